"""The table of the types that the saver and the store can hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NoReturn

from holdfast.adapters.langgraph import _known_types
from holdfast.errors import FormatMismatch
from holdfast.operations.objects import Fields, Shape, TypeTable

# The name of a type for values that a caller's serializer has written.
SERIALIZED = "serialized"


class Types(TypeTable):
    """The types of LangGraph and LangChain; ``allow`` adds classes of the caller."""

    def __init__(self, allow: Iterable[type] = ()) -> None:
        super().__init__(allow)
        self._loads[SERIALIZED] = _refuse_serialized

    def known(self) -> Mapping[type, Shape]:
        """The shapes of the types that need no permission."""
        return _known_types.shapes()

    def unknown(self, value: object) -> object:
        """The text of an exception, as LangGraph's own serializer stores it."""
        if isinstance(value, BaseException):
            return repr(value)
        return super().unknown(value)

    def is_text_of(self, value: object, text: bytes) -> bool:
        """True if `encode` gives this text for a value."""
        return self.encode(value, "value") == text

    def tabled(self, value: object, path: str) -> object:
        """Like `plain`, always by the table of types.

        It is for metadata and the frame of a checkpoint, which are no values of a
        graph.
        """
        return super().plain(value, path)


def _refuse_serialized(fields: Fields) -> NoReturn:
    raise FormatMismatch(
        f"a stored value was written by a serializer ({fields.get('kind')}); pass the"
        " same: HoldfastSaver(..., serde=...)",
        code="type_not_allowed",
    )
