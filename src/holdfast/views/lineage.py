"""Which checkpoints of a listing lie on the line of a head, and of which threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from holdfast._values.records import Checkpoint, ThreadRecord


class LineageEntry(msgspec.Struct, frozen=True):
    """A checkpoint, the threads it is the head of, and the threads it leads to.

    A checkpoint that leads to no head was rewound.
    """

    checkpoint: Checkpoint
    heads: tuple[str, ...]
    threads: tuple[str, ...]

    @property
    def id(self) -> str:
        return self.checkpoint.id

    @property
    def parent(self) -> str | None:
        return self.checkpoint.parent

    @property
    def is_rewound(self) -> bool:
        """Whether no head builds on it."""
        return not self.threads


def lineage_of(
    checkpoints: Iterable[Checkpoint], threads: Sequence[ThreadRecord]
) -> list[LineageEntry]:
    """Entries for checkpoints that are given newest first and without gaps."""
    leading: dict[str, list[str]] = {}
    heads: dict[str, list[str]] = {}
    for thread in threads:
        if thread.head is not None:
            heads.setdefault(thread.head.id, []).append(thread.id)
    found: list[LineageEntry] = []
    for checkpoint in checkpoints:
        here = heads.get(checkpoint.id, [])
        names = here + leading.pop(checkpoint.id, [])
        if checkpoint.parent is not None and names:
            leading.setdefault(checkpoint.parent, []).extend(names)
        found.append(LineageEntry(checkpoint, tuple(here), tuple(names)))
    return found
