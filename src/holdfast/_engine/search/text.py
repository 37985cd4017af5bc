"""Texts in a search: what matches, what is shown, how the index divides them.

Pure. The index only proposes where to look. Whether a message matches is decided here,
on its text, and so is the same with and without an index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from unicodedata import unidata_version

from holdfast._port import Indexed, Stretch
from holdfast._values.records import checksum
from holdfast._values.shortening import ELLIPSIS

# Neighbouring texts of about this many characters are one entry of the index. Measured
# on an FTS5 trigram index, its size against that of the text: 2,048 give 0.47 for prose
# and 1.02 for base64, 4,096 give 0.36 and 0.99, 8,192 give 0.25 and 0.94; but in longer
# entries more often all trigrams of a word occur without the word.
STRETCH = 4096
# The length of what the index holds; shorter texts are searched without it.
GRAM = 3
# Changes when `prepared` gives other results, as with another version of Unicode; what
# was indexed in another form is indexed again.
FORM = checksum(f"1 {unidata_version}".encode())

# A quoted phrase that stands alone, or anything between spaces.
_WORD = re.compile(r'(?<!\S)"([^"]+)"(?!\S)|(\S+)')
BEFORE, AFTER = 40, 60

# Tokenizers stop at NUL, and surrogates cannot be encoded.
_UNENCODABLE = re.compile("[\0\ud800-\udfff]")
_SPACES = re.compile(r"\s+")


class Passage(NamedTuple):
    """A stretch with its text as it is indexed."""

    stretch: Stretch
    text: str


def folded(text: str) -> str:
    """A text as it is compared."""
    return text.casefold()


def words_of(query: str) -> tuple[str, ...]:
    """The words and quoted phrases of a query, each once; a message must have all.

    A query of spaces only stands for itself.
    """
    found = (phrase or word for phrase, word in _WORD.findall(query))
    return tuple(dict.fromkeys(found)) or (query,)


def prepared(text: str) -> str:
    """A text, or part of one, as it is indexed.

    Each character is replaced by one: a text that contains another still does.
    """
    text = folded(text)
    if text.isascii() and "\0" not in text:
        return text  # most texts: the pattern takes longer than folding
    return _UNENCODABLE.sub("\ufffd", text)


# --- what the index holds -------------------------------------------------------------


def divided(texts: Sequence[str], first: int) -> Iterator[Passage]:
    """The prepared texts from ``first`` on, divided into stretches."""
    start, size = first, 0
    for position in range(first, len(texts)):
        size += len(texts[position])
        if size >= STRETCH:
            yield _passage(texts, start, position)
            start, size = position + 1, 0
    if start < len(texts):
        yield _passage(texts, start, len(texts) - 1)


def _passage(texts: Sequence[str], first: int, last: int) -> Passage:
    text = "\n".join(texts[first : last + 1])
    return Passage(Stretch(first, last, len(text), _hash(text)), text)


def _hash(text: str) -> int:
    return checksum(text.encode(), FORM)


def count_unchanged(known: Indexed, texts: Sequence[str]) -> int:
    """The number of first stretches that are unchanged in the prepared texts."""
    if known.form != FORM:
        return 0
    following = 0
    for count, (first, last, _, hash_) in enumerate(known.stretches):
        if first != following or last >= len(texts):
            return count
        if hash_ != _hash("\n".join(texts[first : last + 1])):
            return count
        following = last + 1
    return len(known.stretches)


def count_filled(known: Indexed) -> int:
    """The number of first stretches so long that joining them is no gain."""
    sizes = [stretch.size for stretch in known.stretches]
    for count, size in enumerate(sizes[:-1]):
        if size + sizes[count + 1] < STRETCH:
            return count
    return len(sizes)


# --- what is shown --------------------------------------------------------------------


def shown_needle(text: str, query: str, needles: Sequence[str]) -> str:
    """The text to mark in a folded text: the query as it is, or its longest needle."""
    whole = folded(query)
    return whole if whole in text else max(needles, key=len)


def snippet(text: str, needle: str) -> str:
    """About a hundred characters around the first match of a folded ``needle``."""
    start, end = _place(text, needle)
    end = min(end, start + BEFORE + AFTER)
    room = max(0, AFTER - (end - start) // 2)
    before, after = text[:start].lstrip(), text[end:].rstrip()
    left, right = _narrow(before[-10 * BEFORE :]), _narrow(after[: 10 * AFTER])
    cut_left = len(left) > BEFORE or len(before) > 10 * BEFORE
    cut_right = len(right) > room or len(after) > 10 * AFTER
    shown = _narrow(left[-BEFORE:] + text[start:end] + right[:room]).strip()
    return f"{ELLIPSIS * cut_left}{shown}{ELLIPSIS * cut_right}"


def _narrow(text: str) -> str:
    return _SPACES.sub(" ", text)


def _place(text: str, needle: str) -> tuple[int, int]:
    """The start and end of the needle; folding can make one character several."""
    whole = folded(text)
    at = whole.index(needle)
    end = at + len(needle)
    if len(whole) == len(text):
        return at, end
    start = position = 0
    for index, character in enumerate(text):
        if position <= at:
            start = index
        position += len(folded(character))
        if position >= end:
            return start, index + 1
    raise AssertionError("the needle was found")
