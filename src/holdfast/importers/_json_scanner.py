"""Reads a JSON text part by part.

For files of many records: a damaged record does not hide the others, and only one is in
memory at a time. Also for texts that a checksum covers, which must stay unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from holdfast.importers._files import DECODER
from holdfast.importers._reader import Damaged

_SPACE = re.compile(r"[ \t\n\r]*")
# Strings are matched as a whole, so that brackets and spaces in them do not count.
_STRING = r'"(?:[^"\\]|\\.)*+"'
_TOKEN = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)
_SPACES = re.compile(rf"({_STRING})|[ \t\n\r]+", re.DOTALL)

_JUNK = re.compile(r'[^\[\]{}",]+')
_DEPTHS = {"[": 1, "{": 1, "]": -1, "}": -1}


class Scanner:
    """A position in a JSON text, which each method moves behind what it reads.

    Raises `Damaged` where the text is not as expected.
    """

    def __init__(self, text: str, position: int = 0) -> None:
        self.text, self.position = text, position

    def members(self) -> Iterator[str]:
        """The keys of an object; the caller reads each value before the next key."""
        for _ in self._items("{", "}"):
            name = self.value()
            if not isinstance(name, str):
                raise self._damage("a key is not text")
            self._expect(":")
            yield name

    def elements(self) -> Iterator[None]:
        """Stops before each element of a list; the caller reads it before the next."""
        return self._items("[", "]")

    def value(self) -> Any:
        """The value at the position."""
        self._peek()
        try:
            value, self.position = DECODER.raw_decode(self.text, self.position)
        except ValueError as error:
            raise self._damage(getattr(error, "msg", str(error))) from None
        return value

    def try_value(self) -> Any:
        """The value at the position, ``None`` if there is no whole one."""
        try:
            return self.value()
        except (Damaged, RecursionError):
            return None

    def span(self) -> str:
        """The text of the value at the position; its inside may be malformed."""
        self._peek()
        start = self.position
        try:
            _, self.position = DECODER.raw_decode(self.text, start)
        except (ValueError, RecursionError):
            junk = _JUNK.match(self.text, start)
            if junk is None:
                self._pass_brackets()
            else:
                self.position = junk.end()
        return self.text[start : self.position]

    def _pass_brackets(self) -> None:
        depth = 0
        for token in _TOKEN.finditer(self.text, self.position):
            depth += _DEPTHS.get(token[0], 0)
            if depth <= 0:
                self.position = token.end()
                return
        raise self._damage("it ends too early")

    def end(self) -> None:
        """Raise `Damaged` if more text follows."""
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
        spaces = _SPACE.match(self.text, self.position)
        assert spaces is not None
        self.position = spaces.end()
        return self.text[self.position : self.position + 1]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._damage(f"{character!r} is missing")
        self.position += 1

    def _damage(self, reason: str) -> Damaged:
        return Damaged(f"is torn or damaged at character {self.position}: {reason}")


def elements(text: str) -> Iterator[str]:
    """The texts of the elements of a JSON list, or the text of any other value."""
    if not text.lstrip().startswith("["):
        yield text
        return
    scanner = Scanner(text)
    for _ in scanner.elements():
        yield scanner.span()
    scanner.end()


def is_json(text: str) -> bool:
    """True if a text is one whole value."""
    scanner = Scanner(text)
    return scanner.try_value() is not None and scanner.position == len(text)


def members(text: str) -> dict[str, str]:
    """The texts of the values of a well-formed JSON object."""
    scanner, found = Scanner(text), dict[str, str]()
    for name in scanner.members():
        found[name] = scanner.span()
    return found


def compact(text: str) -> bytes:
    """A JSON text without the spaces between its tokens; the tokens are unchanged."""
    return _SPACES.sub(r"\1", text).encode()
