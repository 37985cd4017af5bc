"""Scanning a file of lines: what is whole, what is damaged, what was torn by a crash.

A line is acknowledged only after all of it was synced. So a crash can only leave an end
that was being written: bytes that are no line, or some but not all lines of one
transaction. Anything else that is wrong is damage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from holdfast.backends.directory._lines import FIRST, BadLine, StoredLine, read_lines


class Position(NamedTuple):
    """An offset between two lines, and the checksum of the line before it."""

    end: int = 0
    tail: str = FIRST


class FileScan(NamedTuple):
    """The lines of a file.

    ``end`` is the position after its last line, ``solid`` after the last transaction
    before the first problem. ``is_known`` says that everything up to the known position
    is unchanged, ``is_torn`` that the problem may be an end that was being written,
    ``is_short`` that it can hardly be anything else, ``is_open`` that the last line
    lacks its line break. ``first`` is the first whole line.
    """

    first: StoredLine | None
    end: Position
    solid: Position
    bads: tuple[BadLine, ...]
    is_known: bool
    is_torn: bool
    is_short: bool
    is_open: bool

    @property
    def is_whole(self) -> bool:
        """True if no line is bad and no transaction incomplete."""
        return self.end == self.solid and not self.bads

    @property
    def damage(self) -> str:
        """The first problem, in words."""
        if not self.bads:
            return f"at byte {self.solid.end} a transaction is not complete"
        first, *others = self.bads
        more = f", and {len(others)} more" if others else ""
        return f"at byte {first.start} a line is bad: {first.why}{more}"


def scan_file(pieces: Iterable[bytes], known: Position = Position()) -> FileScan:  # noqa: B008 - it is frozen
    """Scan a whole file, which may be known up to a position."""
    scanner = _Scanner(known)
    for item in read_lines(pieces):
        scanner.add(item)
    return scanner.found()


def on_one_branch(lines: Iterable[StoredLine]) -> Iterator[StoredLine]:
    """The lines of a damaged file without copies of lines, and without other branches.

    After Git has merged two clones, two lines follow one; the first is taken, and with
    it what follows it.
    """
    taken: set[str] = set()
    followed: set[str] = set()
    left_out: set[str] = set()
    for line in lines:
        if line.check in taken:
            continue
        if line.after in followed or line.after in left_out:
            left_out.add(line.check)
            continue
        taken.add(line.check)
        followed.add(line.after)
        yield line


def unreadable(why: str) -> FileScan:
    """The result for a file that cannot be read."""
    bads = (BadLine(0, 0, why),)
    return FileScan(None, Position(), Position(), bads, False, False, False, False)


class _Scanner:
    def __init__(self, known: Position) -> None:
        self.known = known
        self.first: StoredLine | None = None
        self.is_known = known == Position()
        self.end = self.solid = Position()
        self.bads: list[BadLine] = []
        self.expected: str | None = FIRST
        self.is_torn = True
        self.is_open = False

    def add(self, item: StoredLine | BadLine) -> None:
        if isinstance(item, BadLine):
            self.bads.append(item)
            self.expected = None
            return
        if self.expected not in {None, item.after}:
            why = "the line before it is missing"
            self.bads.append(BadLine(item.start, item.start, why))
            self.is_torn = False
        self._step(item)

    def _step(self, line: StoredLine) -> None:
        number, count = line.part
        self.first = self.first or line
        # The position once it has its line break.
        self.end = Position(line.end + line.is_open, line.check)
        self.expected = line.check
        self.is_open = line.is_open
        if self.bads:
            # After a torn line there can only be more lines of its transaction.
            self.is_torn = self.is_torn and number > 1
            return
        if number == count:
            self.solid = self.end
        self.is_known = self.is_known or self.end == self.known

    def found(self) -> FileScan:
        if self.first is None and not self.bads:
            # A file is named only once its first line is in it.
            self.bads.append(BadLine(0, 0, "there is none"))
            self.is_torn = False
        return FileScan(
            first=self.first,
            end=self.end,
            solid=self.solid,
            bads=tuple(self.bads),
            is_known=self.is_known,
            is_torn=self.is_torn and self.is_known and self.solid.end >= self.known.end,
            is_short=[bad.is_short for bad in self.bads] == [True],
            is_open=self.is_open,
        )
