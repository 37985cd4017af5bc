"""Looking through a file of lines: what is whole, what is damaged, what was torn.

A line was acknowledged only after all of it was synced. So what a crash leaves behind
is an end that was being written: bytes that are no line, or some but not all lines of
one transaction. Anything else that is wrong is damage.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.backends.directory._lines import FIRST, Bad, Line, read_lines


class Mark(NamedTuple):
    """A place between two lines, and the checksum of the line before it."""

    end: int = 0
    tail: str = FIRST


class Survey(NamedTuple):
    """What a file of lines looks like from inside.

    ``end`` is behind its last line, ``solid`` behind the last transaction before
    anything is wrong. ``is_known`` says that everything up to a mark is as it was,
    ``is_torn`` that what is wrong may be an end that was being written, ``is_short``
    that it can hardly be anything else, ``is_open`` that the last line lacks its line
    break. ``first`` is the first whole line.
    """

    first: Line | None
    end: Mark
    solid: Mark
    bads: tuple[Bad, ...]
    is_known: bool
    is_torn: bool
    is_short: bool
    is_open: bool

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return self.end == self.solid and not self.bads

    @property
    def damage(self) -> str:
        """What is wrong, in words."""
        if not self.bads:
            return f"at byte {self.solid.end} a transaction is not complete"
        first, *others = self.bads
        more = f", and {len(others)} more" if others else ""
        return f"at byte {first.start} a line is bad: {first.why}{more}"


def survey(pieces: Iterable[bytes], known: Mark = Mark()) -> Survey:  # noqa: B008 - it is frozen
    """Look through a whole file, of which everything up to a mark may be known."""
    surveyor = _Surveyor(known)
    for item in read_lines(pieces):
        surveyor.pass_by(item)
    return surveyor.found()


def unreadable(why: str) -> Survey:
    """A file that cannot be looked through."""
    bads = (Bad(0, 0, why),)
    return Survey(None, Mark(), Mark(), bads, False, False, False, False)


class _Surveyor:
    def __init__(self, known: Mark) -> None:
        self.known = known
        self.first: Line | None = None
        self.is_known = known == Mark()
        self.end = self.solid = Mark()
        self.bads: list[Bad] = []
        self.expected: str | None = FIRST
        self.is_torn = True
        self.is_open = False

    def pass_by(self, item: Line | Bad) -> None:
        if isinstance(item, Bad):
            self.bads.append(item)
            self.expected = None
            return
        if self.expected not in {None, item.after}:
            why = "what stood before it is missing"
            self.bads.append(Bad(item.start, item.start, why))
            self.is_torn = False
        self._step(item)

    def _step(self, line: Line) -> None:
        number, count = line.part
        self.first = self.first or line
        # Where it will end once it has its line break.
        self.end = Mark(line.end + line.is_open, line.check)
        self.expected = line.check
        self.is_open = line.is_open
        if self.bads:
            # Behind what was torn, there are at most more lines of its transaction.
            self.is_torn = self.is_torn and number > 1
            return
        if number == count:
            self.solid = self.end
        self.is_known = self.is_known or self.end == self.known

    def found(self) -> Survey:
        return Survey(
            first=self.first,
            end=self.end,
            solid=self.solid,
            bads=tuple(self.bads),
            is_known=self.is_known,
            is_torn=self.is_torn and self.is_known and self.solid.end >= self.known.end,
            is_short=[bad.is_short for bad in self.bads] == [True],
            is_open=self.is_open,
        )
