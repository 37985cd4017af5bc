"""Stored texts and values as a surface shows them: redacted first, then cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, cast

import msgspec
import orjson

from holdfast._values.shortening import shortened
from holdfast.views.documents import plain

# Gives a text without what must not be shown.
Redact: TypeAlias = Callable[[str], str]

# How many items one page may have.
PageSize: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
# The number of an item, from 0 on.
Position: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]

LONGEST_TEXT = 4_000
LONGEST_LINE = 200
# A value whose JSON is longer is shown as the beginning of its text.
LARGEST_VALUE = 16_000


class Showing(msgspec.Struct, frozen=True):
    """Leaves secrets out of texts and values, and cuts long ones.

    Redaction comes before cutting: a secret that a cut divides would not be found.
    """

    redact: Redact | None = None
    longest: int = LONGEST_TEXT

    def text(self, text: str) -> str | dict[str, Any]:
        """A text, or the beginning of a long one with its whole length."""
        text = self.whole(text)
        if len(text) <= self.longest:
            return text
        return {"text": text[: self.longest], "cut": True, "length": len(text)}

    def line(self, text: str, longest: int = LONGEST_LINE) -> str:
        """A text on one line, for listings."""
        # Only the beginning is looked at: a text may have many megabytes.
        start = self.whole(text)[: longest * 4]
        return shortened(" ".join(start.split()), longest)

    def name(self, text: str | None) -> str | None:
        """A label, a title or an owner."""
        return None if text is None else self.line(text, LONGEST_LINE)

    def whole(self, text: str) -> str:
        """A whole text without what must not be shown."""
        return text if self.redact is None else self.redact(text)

    def value(self, value: object) -> Any:
        """A value as JSON, or the beginning of its text if that is long."""
        found = self.redacted(plain(value))
        if isinstance(found, str):
            return self.cut(found)
        text = orjson.dumps(found)
        return found if len(text) <= LARGEST_VALUE else self.cut(text.decode())

    def cut(self, text: str) -> str | dict[str, Any]:
        """A text that has been redacted already, cut if it is long."""
        return Showing(None, self.longest).text(text)

    def redacted(self, value: Any) -> Any:
        """A JSON value, all texts in it without what must not be shown."""
        if self.redact is None:
            return value
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, list):
            listed = cast("list[object]", value)
            return [self.redacted(item) for item in listed]
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).items()
            return {self.redact(key): self.redacted(item) for key, item in items}
        return value
