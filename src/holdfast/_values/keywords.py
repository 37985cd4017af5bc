"""Keyword options that are declared once, as a TypedDict or as a struct."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Protocol

import msgspec


class Declared(Protocol):
    """A TypedDict class without required keys."""

    __optional_keys__: frozenset[str]


def refuse_unknown(
    what: str, given: Mapping[str, object], declared: Declared, *others: str
) -> None:
    """Raise `TypeError`, as Python does, for a keyword that was not declared.

    ``others`` are the keywords that the caller takes beside the declared ones.
    """
    known = declared.__optional_keys__
    if not given.keys() <= known:
        raise _refusal(what, min(given.keys() - known), {*known, *others})


def refuse_other_fields(
    what: str, given: Mapping[str, object], struct: type[msgspec.Struct]
) -> None:
    """Like `refuse_unknown`, for keywords that are the fields of a struct."""
    known = struct.__struct_fields__
    if not given.keys() <= {*known}:
        raise _refusal(what, min(given.keys() - {*known}), known)


def choice(unknown: str, known: Collection[str]) -> str:
    """The hint for an unknown name: the name that was probably meant, or all."""
    near = get_close_matches(unknown, sorted(known), 1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    return f"{meant}choose from {', '.join(sorted(known))}"


class OptionsMeta(msgspec.StructMeta):
    """Makes structs that callers write out: an unknown field gets a suggestion."""

    if not TYPE_CHECKING:  # a checker knows the fields by the class itself

        def __call__(self, *args: Any, **fields: Any) -> Any:
            try:
                return super().__call__(*args, **fields)
            except TypeError:
                known = self.__struct_fields__
                unknown = fields.keys() - {*known}
                if not unknown:
                    raise
                raise _refusal(self.__name__, min(unknown), known) from None


def _refusal(what: str, unknown: str, known: Collection[str]) -> TypeError:
    return TypeError(f"{what} has no option {unknown!r}; {choice(unknown, known)}")
