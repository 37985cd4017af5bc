"""The result of a run: rows with targets, peers over time, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from benchmarks.contest.units import duration, volume

Bound = Literal["at most", "at least"]


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison: a ratio, and what it has to be if there is a target."""

    work: str
    measured: str
    ratio: float
    limit: float | None = None
    bound: Bound = "at most"
    problem: str = ""

    @property
    def target(self) -> str:
        """The target as text."""
        sign = "<=" if self.bound == "at most" else ">="
        return "" if self.limit is None else f"{sign} {self.limit:g} x"

    @property
    def met(self) -> bool | None:
        """Whether the target is reached, ``None`` if there is none."""
        if self.problem:
            return False
        return None if self.limit is None else self._is_within

    @property
    def _is_within(self) -> bool:
        assert self.limit is not None
        if self.bound == "at most":
            return self.ratio <= self.limit
        return self.ratio >= self.limit

    @property
    def verdict(self) -> str:
        """Yes, or by how much it was missed."""
        if self.met is None:
            return ""
        if self.met:
            return "yes"
        return "NO, " + ", ".join(filter(None, (self.missed_by, self.problem)))

    @property
    def missed_by(self) -> str:
        """How far the ratio is from the target, if it is on the wrong side."""
        if self.limit is None or not self.ratio or self._is_within:
            return ""
        off = abs(self.ratio / self.limit - 1)
        return f"{off:.0%} {'over' if self.bound == 'at most' else 'short'}"


@dataclass(frozen=True, slots=True)
class Series:
    """One store through a whole conversation: its size, and its time per turn."""

    store: str
    turns: int
    raw: int
    disk: int
    first: float
    last: float
    p50: float
    p99: float

    @property
    def ratio(self) -> float:
        """Bytes on disk against the conversation itself."""
        return self.disk / self.raw


def failed(
    work: str, problem: str, limit: float | None = None, bound: Bound = "at most"
) -> Row:
    """A row that could not be measured."""
    return Row(work, "not measured", 0.0, limit, bound, problem)


def times(ours: float, reference: float, name: str) -> str:
    """Two durations side by side."""
    return f"{duration(ours)}; {name} {duration(reference)}"


def comparison(rows: Iterable[Row]) -> str:
    """The table of rows, as Markdown."""
    head = ("work", "target", "measured", "ratio", "met")
    body = [(r.work, r.target, r.measured, f"{r.ratio:.2f} x", r.verdict) for r in rows]
    return table([head, *body])


def progress(series: Iterable[Series]) -> str:
    """The table of stores through a conversation, as Markdown."""
    head = (
        "store", "turns", "on disk", "x raw", "bytes a save",
        "first 20 turns", "last 20 turns", "p50", "p99",
    )  # fmt: skip
    body = [
        (
            s.store,
            str(s.turns),
            volume(s.disk),
            f"{s.ratio:.2f}",
            f"{s.disk / s.turns:,.0f}",
            *map(duration, (s.first, s.last, s.p50, s.p99)),
        )
        for s in series
    ]
    return table([head, *body])


def table(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells with equal widths, the first as a heading."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    drawn = ["| " + " | ".join(map(str.ljust, cells, widths)) + " |" for cells in lines]
    drawn.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(drawn)


def as_json(row: Row | Series) -> dict[str, object]:
    """A record for results.json."""
    values = asdict(row)
    if isinstance(row, Row):
        values |= {"target": row.target, "met": row.met}
    return values
