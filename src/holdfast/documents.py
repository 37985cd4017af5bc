"""Documents as typed records: text or JSON under a name such as ``notes/rust``."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast._values.keywords import OptionsMeta


class Document(msgspec.Struct, kw_only=True, metaclass=OptionsMeta):
    """A text or any other storable value under a name.

    The part of the name before the last slash is its ``category``, which may contain
    slashes too; names are never used as paths. ``version`` counts the saves.
    """

    name: str
    content: Any = ""
    metadata: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    created_at: int = 0
    updated_at: int = 0
    version: int = 0
    checkpoint: str | None = None

    @property
    def category(self) -> str:
        """The part of the name before the last slash, "" without one."""
        return self.name.rpartition("/")[0]

    @property
    def is_text(self) -> bool:
        """True if the content is text."""
        return isinstance(self.content, str)


class DocumentSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A document as listings show it, without its content.

    ``size`` is the bytes of its content, metadata and first time as JSON.
    """

    name: str
    category: str
    size: int
    version: int
    metadata: dict[str, Any]
    updated_at: int
