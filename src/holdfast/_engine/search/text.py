"""Searching texts: what matches, how it is shown, and how an index divides them.

Pure. An index only ever proposes where to look; whether something matches is decided
here, on the text itself, and so is the same with and without one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from unicodedata import unidata_version

from holdfast._port import Indexed, Stretch
from holdfast._values.records import checksum

# Texts of so many characters are indexed as one. Measured on an FTS5 trigram index,
# against the text: 2,048 take 0.47 of prose and 1.02 of base64, 4,096 take 0.36 and
# 0.99, 8,192 take 0.25 and 0.94; but the longer, the more of them hold all parts of
# a word and not the word.
STRETCH = 4096
# What indexes are made of; shorter queries have to do without one.
GRAM = 3
# Changes with what `prepared` gives, so that nobody uses what another Python indexed.
FORM = checksum(f"1 {unidata_version}".encode())

BEFORE, AFTER = 40, 60
ELLIPSIS = "…"

# Tokenizers stop at NUL, and surrogates cannot be encoded.
_UNENCODABLE = re.compile("[\0\ud800-\udfff]")
_SPACES = re.compile(r"\s+")


class Passage(NamedTuple):
    """A stretch and its texts as they are indexed."""

    stretch: Stretch
    text: str


def folded(text: str) -> str:
    """A text as it is compared."""
    return text.casefold()


def prepared(text: str) -> str:
    """A text, or part of one, as it is indexed.

    One character is replaced by one: what holds another text still does.
    """
    return _UNENCODABLE.sub("\ufffd", folded(text))


# --- what the index holds -------------------------------------------------------------


def divided(texts: Sequence[str], first: int) -> Iterator[Passage]:
    """Prepared texts from ``first`` on, in stretches."""
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
    """How many of the first stretches still hold these prepared texts."""
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
    """How many of the first stretches are long enough to be left as they are."""
    sizes = [stretch.size for stretch in known.stretches]
    for count, size in enumerate(sizes[:-1]):
        if size + sizes[count + 1] < STRETCH:
            return count
    return len(sizes)


# --- what is shown --------------------------------------------------------------------


def snippet(text: str, needle: str) -> str:
    """About a hundred characters around the first place of a folded ``needle``."""
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
    """Where a needle stands; folding may make one character several."""
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
