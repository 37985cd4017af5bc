"""The digests of a family's checkpoints, recomputed from its segments."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from hashlib import sha256

from holdfast._values.file_digests import FileDigests
from holdfast._values.manifest import Manifest, decode_manifest, digest
from holdfast._values.records import Checkpoint, Run
from holdfast._values.rope import Rope, chain_of
from holdfast.errors import HoldfastError

# Hashes in a block, and bytes of a hash.
BLOCK, SIZE = 32, 32


class SegmentHashes:
    """Hashes by the numbers of segments, which mostly follow one another.

    In blocks of bytes: a family may have millions, and a dict takes six times as much.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, bytearray] = {}
        self._present: dict[int, int] = {}

    def __setitem__(self, number: int, digest: bytes) -> None:
        block, place = divmod(number, BLOCK)
        if block not in self._blocks:
            self._blocks[block] = bytearray(BLOCK * SIZE)
        self._blocks[block][place * SIZE : place * SIZE + SIZE] = digest
        self._present[block] = self._present.get(block, 0) | 1 << place

    def __getitem__(self, number: int) -> bytes:
        block, place = divmod(number, BLOCK)
        return bytes(self._blocks[block][place * SIZE : place * SIZE + SIZE])

    def __contains__(self, number: int) -> bool:
        block, place = divmod(number, BLOCK)
        return bool(self._present.get(block, 0) >> place & 1)

    def __len__(self) -> int:
        return sum(bits.bit_count() for bits in self._present.values())


class Digests:
    """Recomputes digests, each from the parent's where a checkpoint extends it.

    The caller adds the segments of checkpoints before these are checked, and checks
    parents before children.
    """

    def __init__(self) -> None:
        self.hashes = SegmentHashes()
        self._files = FileDigests(self.hashes)
        self._checked: dict[str, tuple[Checkpoint, Manifest]] = {}

    def add(self, number: int, data: bytes) -> None:
        """Remember the hash of a segment."""
        self.hashes[number] = sha256(data).digest()
        self._files.add(number, data)

    def knows(self, id_: str) -> bool:
        return id_ in self._checked

    def recall(self, checkpoint: Checkpoint) -> None:
        """Take a checkpoint as a parent of others; it is checked by itself."""
        with contextlib.suppress(HoldfastError):
            self._checked[checkpoint.id] = checkpoint, decode_manifest(checkpoint)

    def forget_all_but(self, count: int) -> None:
        """Keep only the checkpoints that were checked last."""
        if len(self._checked) > count:
            for id_ in list(self._checked)[:-count]:
                del self._checked[id_]

    def check(self, checkpoint: Checkpoint) -> list[str]:
        """The problems of a checkpoint."""
        problems: list[str] = []
        known = self._checked.get(checkpoint.parent or "")
        parent, before = known or (None, None)
        if checkpoint.parent is not None and parent is None:
            problems.append("its parent cannot be read")
        above = checkpoint.link or (parent.sha256 if parent else b"")
        if digest(checkpoint, above) != checkpoint.sha256:
            problems.append("its digest does not match its content")
        try:
            manifest = decode_manifest(checkpoint)
        except HoldfastError as error:
            return [*problems, str(error)]
        for name, value in manifest.values.items():
            if isinstance(value, Rope):
                old = before.values.get(name) if before else None
                problems += self._check_rope(name, value, old)
        if manifest.files is not None:
            old_files = before.files if before else None
            problems += self._files.check(manifest.files, old_files)
        self._checked[checkpoint.id] = checkpoint, manifest
        return problems

    def _check_rope(self, name: str, rope: Rope, old: object) -> Iterator[str]:
        start, chain = 0, b""
        if isinstance(old, Rope) and _extends(rope, old):
            start, chain = sum(r.last - r.first + 1 for r in old.runs), old.chain
        tail = list(_numbers_from(rope.runs, start))
        lost = [number for number in tail if number not in self.hashes]
        if lost:
            yield f"{name!r}: segment {lost[0]} is lost or damaged"
        elif chain_of((self.hashes[n] for n in tail), chain) != rope.chain:
            yield f"{name!r}: its bytes are not what was saved"


def _numbers_from(runs: Iterable[Run], start: int) -> Iterator[int]:
    """The segment numbers of runs after the first ``start``, which cost no steps."""
    for first, last in runs:
        count = last - first + 1
        yield from range(first + min(start, count), last + 1)
        start -= min(start, count)


def _extends(new: Rope, old: Rope) -> bool:
    if not old.runs or len(new.runs) < len(old.runs):
        return False
    last = len(old.runs) - 1
    grown = new.runs[last]
    return (
        new.is_list == old.is_list
        and new.runs[:last] == old.runs[:last]
        and grown.first == old.runs[last].first
        and grown.last >= old.runs[last].last
    )
