"""Values in the bytes of a caller's serializer, such as one that encrypts.

Each value of a channel and each write of a task is then one opaque text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from langgraph.checkpoint.serde.base import SerializerProtocol

from holdfast.adapters.langgraph._types import SERIALIZED, Types
from holdfast.errors import Unstorable
from holdfast.operations.objects import TYPE, Fields
from holdfast.operations.values import codec


class SerializedTypes(Types):
    """Like `Types`, with a serializer for values of channels and writes of tasks.

    Values that were stored without the serializer can still be loaded.
    """

    def __init__(self, serde: SerializerProtocol, allow: Iterable[type] = ()) -> None:
        super().__init__(allow)
        self._serde = serde
        self._loads[SERIALIZED] = self._loaded

    def allowing(self, hints: Iterable[object]) -> Self:
        """The same types: the serializer decides which types are allowed."""
        del hints
        return self

    def plain(self, value: object, path: str) -> object:
        try:
            kind, data = self._serde.dumps_typed(value)
        except (TypeError, ValueError) as error:
            text = f"is refused by {type(self._serde).__name__}: {error}"
            raise Unstorable(path, text) from error
        return {TYPE: SERIALIZED, "kind": kind, "data": data}

    def is_text_of(self, value: object, text: bytes) -> bool:
        # Equal values have different texts if the serializer encrypts.
        return bool(self.revive(codec.decode(text)) == value)

    def _loaded(self, stored: Fields) -> object:
        return self._serde.loads_typed((stored["kind"], stored["data"]))
