"""Going through a JSON text part by part.

For files of many records: one that is damaged does not hide the others, and only one is
in memory at a time. And for texts that count as they are, such as those of checksums.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from holdfast.importers._files import DECODER
from holdfast.importers._source import Damaged

_SPACE = re.compile(r"[ \t\n\r]*")
# Strings are matched whole: brackets and spaces in them do not count.
_STRING = r'"(?:[^"\\]|\\.)*+"'
_TOKEN = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)
_SPACES = re.compile(rf"({_STRING})|[ \t\n\r]+", re.DOTALL)

_JUNK = re.compile(r'[^\[\]{}",]+')
_DEPTHS = {"[": 1, "{": 1, "]": -1, "}": -1}


class Scanner:
    """A place in a JSON text, moved on by looking at what stands there.

    Raises `Damaged` where the text is not what is expected.
    """

    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0

    def members(self) -> Iterator[str]:
        """The keys of an object; each value has to be passed before the next."""
        for _ in self._items("{", "}"):
            name = self.value()
            if not isinstance(name, str):
                raise self._damage("a key is not text")
            self._expect(":")
            yield name

    def elements(self) -> Iterator[None]:
        """Stands before each element of a list, which has to be passed."""
        return self._items("[", "]")

    def value(self) -> Any:
        """The value that stands here."""
        self._peek()
        try:
            value, self.place = DECODER.raw_decode(self.text, self.place)
        except ValueError as error:
            raise self._damage(getattr(error, "msg", str(error))) from None
        return value

    def span(self) -> str:
        """The text of the value that stands here, well-formed inside or not."""
        self._peek()
        start = self.place
        try:
            _, self.place = DECODER.raw_decode(self.text, start)
        except (ValueError, RecursionError):
            junk = _JUNK.match(self.text, start)
            if junk is None:
                self._pass_brackets()
            else:
                self.place = junk.end()
        return self.text[start : self.place]

    def _pass_brackets(self) -> None:
        depth = 0
        for token in _TOKEN.finditer(self.text, self.place):
            depth += _DEPTHS.get(token[0], 0)
            if depth <= 0:
                self.place = token.end()
                return
        raise self._damage("it ends too early")

    def end(self) -> None:
        """Make sure that nothing follows."""
        if self._peek():
            raise self._damage("there is more text than there should be")

    def _items(self, opening: str, closing: str) -> Iterator[None]:
        self._expect(opening)
        if self._peek() != closing:
            yield
            while self._peek() != closing:
                self._expect(",")
                yield
        self._expect(closing)

    def _peek(self) -> str:
        spaces = _SPACE.match(self.text, self.place)
        assert spaces is not None
        self.place = spaces.end()
        return self.text[self.place : self.place + 1]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._damage(f"{character!r} is missing")
        self.place += 1

    def _damage(self, reason: str) -> Damaged:
        return Damaged(f"is torn or damaged at character {self.place}: {reason}")


def elements(text: str) -> Iterator[str]:
    """The texts of the elements of a JSON list, or the text of any other value."""
    if not text.lstrip().startswith("["):
        yield text
        return
    scanner = Scanner(text)
    for _ in scanner.elements():
        yield scanner.span()
    scanner.end()


def members(text: str) -> dict[str, str]:
    """The texts of the values of a well-formed JSON object."""
    scanner, found = Scanner(text), dict[str, str]()
    for name in scanner.members():
        found[name] = scanner.span()
    return found


def compact(text: str) -> bytes:
    """A JSON text without the spaces between its tokens, which stay as they are."""
    return _SPACES.sub(r"\1", text).encode()
