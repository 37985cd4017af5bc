"""The report of an import, for people and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from holdfast.importers._reader import Finding


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of each kind.

    ``messages`` are those of the newest state of each conversation,
    ``agent_checkpoints`` are checkpoints of an agent with its conversations.
    """

    threads: int = 0
    conversations: int = 0
    agents: int = 0
    documents: int = 0
    checkpoints: int = 0
    agent_checkpoints: int = 0
    messages: int = 0

    def __str__(self) -> str:
        counted = [
            f"{number:,} {_named(name, number)}"
            for name, number in msgspec.structs.asdict(self).items()
            if number
        ]
        return ", ".join(counted) or "nothing"


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The report of an import; with ``dry_run`` of one that was not made.

    ``found`` counts by the source's own names. ``already_there`` counts what an earlier
    import brought, ``inferred`` lists what had to be guessed, ``damaged`` what could
    not be read, ``conflicts`` what could not be saved, ``ignored`` the files that hold
    nothing to import. If a folder holds several formats, ``parts`` are their reports,
    and this one has everything of them.
    """

    format: str
    path: str
    dry_run: bool
    found: dict[str, int]
    imported: Counts
    already_there: Counts
    inferred: tuple[str, ...]
    damaged: tuple[Finding, ...]
    conflicts: tuple[Finding, ...]
    ignored: tuple[Finding, ...]
    parts: tuple[Report, ...] = ()

    @property
    def is_complete(self) -> bool:
        """True if the store has all of the source."""
        return not self.damaged and not self.conflicts

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        verb = "would import" if self.dry_run else "imported"
        yield f"{verb} {self.imported} from {self.path} ({self.format})"
        if self.parts:
            yield from map(str, self.parts)
            return
        if self.already_there != Counts():
            yield f"already there: {self.already_there}"
        for name in ("damaged", "conflicts", "inferred", "ignored"):
            listed: tuple[object, ...] = getattr(self, name)
            if listed:
                yield f"{name}:"
                yield from (f"  {item}" for item in listed)


def joined(path: str, reports: Sequence[Report]) -> Report:
    """One report of what was found at a path in one or several formats."""
    if len(reports) == 1:
        return reports[0]
    found = Counter[str]()
    for report in reports:
        found.update(report.found)
    return Report(
        format=", ".join(dict.fromkeys(report.format for report in reports)),
        path=path,
        dry_run=reports[0].dry_run,
        found=dict(found),
        imported=_sum(report.imported for report in reports),
        already_there=_sum(report.already_there for report in reports),
        inferred=tuple(note for report in reports for note in report.inferred),
        damaged=tuple(f for report in reports for f in report.damaged),
        conflicts=tuple(f for report in reports for f in report.conflicts),
        ignored=tuple(f for report in reports for f in report.ignored),
        parts=tuple(reports),
    )


def _sum(counts: Iterable[Counts]) -> Counts:
    total = Counter[str]()
    for each in counts:
        total.update(msgspec.structs.asdict(each))
    return Counts(**total)


def _named(name: str, number: int) -> str:
    words = name.replace("_", " ")
    return words.removesuffix("s") if number == 1 else words
