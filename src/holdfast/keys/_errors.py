"""Errors and problems of a backend with the names that callers know."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial, wraps
from typing import Any, Protocol, TypeVar, cast

from holdfast._values.records import SEPARATOR
from holdfast.errors import Conflict, Corrupt, HoldfastError, NotFound
from holdfast.keys._ciphers import MARK, NAMES
from holdfast.keys._records import Records

V = TypeVar("V", bound=Callable[..., Any])


class HasRecords(Protocol):
    """A layer that converts records."""

    @property
    def records(self) -> Records: ...


COLUMNS = ("thread", "key", "label", "tag", "owner", "agent", "kind")


class ErrorDecoder:
    """Puts names in the place of encrypted ones."""

    def __init__(self, records: Records) -> None:
        self.records = records

    def text(self, text: str) -> str:
        """A text of the backend with the names as callers know them."""
        return NAMES.sub(lambda match: self._name(match[0]), text)

    def _name(self, found: str) -> str:
        hidden = found.replace(repr(SEPARATOR)[1:-1], SEPARATOR)
        for column in COLUMNS:
            try:
                return self.records.show(hidden, column)
            except Corrupt:
                continue
        return found

    async def error(self, error: HoldfastError) -> HoldfastError:
        """The same error with names and records as callers know them."""
        thread = error.thread if isinstance(error, Conflict | NotFound) else None
        if MARK not in error.message + (thread or ""):
            return error
        shown = copy(error)  # the backend may give one error to several callers
        shown.message = self.text(error.message)
        shown.args = (shown.message,)
        if isinstance(shown, Conflict | NotFound) and thread:
            shown.thread = self.text(thread)
        if isinstance(shown, Conflict) and shown.found is not None:
            show = partial(self.records.show_checkpoint, shown.found)
            shown.found = await self.records.loaded(show)
        return shown


def names_shown(verb: V) -> V:
    """A verb of a layer whose errors have the names that callers know."""

    @wraps(verb)
    async def shown(layer: HasRecords, *args: Any) -> Any:
        try:
            return await verb(layer, *args)
        except HoldfastError as error:
            decoder = ErrorDecoder(layer.records)
            raise await decoder.error(error) from error.__cause__

    # It has the signature of the verb, which a type checker cannot follow.
    return cast("V", shown)
