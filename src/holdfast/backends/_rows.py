"""Rows ↔ records, as far as all SQL backends have the same columns in the same order.

What a checksum covers, and how a row is written, is up to each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from holdfast._values.records import Checkpoint, Origin, Run, ThreadRecord, checksum
from holdfast.errors import Corrupt

# Columns arrive as whatever is stored; the checksum is what vouches for them.
Row = tuple[Any, ...]

# Of ``thread_full``, those of the thread itself.
HEAD_COLUMNS = 14


def encode_runs(runs: tuple[Run, ...]) -> str:
    """The text of the ``runs`` column."""
    return orjson.dumps([list(run) for run in runs]).decode()


def encode_tags(tags: tuple[str, ...]) -> str | None:
    """The text of the ``tags`` column, null for none."""
    return orjson.dumps(tags).decode() if tags else None


def row_checksum(
    columns: Row, metadata: bytes, manifest: bytes, digest: bytes, link: bytes | None
) -> int:
    """Covers the columns of a checkpoint, those that are bytes apart."""
    # The bytes follow the rest with their lengths, so that no two rows read alike.
    link = link or b""
    plain = (*columns, len(metadata), len(manifest), len(link))
    return checksum(b"".join((orjson.dumps(plain), metadata, manifest, digest, link)))


def checkpoint_of(row: Row) -> Checkpoint:
    """A row of ``checkpoint_full`` whose checksum was found to be right."""
    (seq, id_, thread_name, _, parent_id, step, saved_at, kind, label, tags, size,
     digest, family, runs, manifest, metadata, link, _, thread) = row  # fmt: skip
    return Checkpoint(
        id=id_,
        thread=thread_name,
        parent=parent_id,
        seq=seq,
        step=step,
        saved_at=saved_at,
        kind=kind,
        label=label,
        tags=tuple(orjson.loads(tags)) if tags else (),
        size=size,
        sha256=digest,
        family=family,
        thread_number=thread,
        runs=tuple(Run(*run) for run in orjson.loads(runs)),
        manifest=manifest,
        encoded_metadata=metadata,
        link=link,
    )


def thread_of(row: Row, to_checkpoint: Callable[[Row], Checkpoint]) -> ThreadRecord:
    """A row of ``thread_full``, the head of which a backend checks and converts."""
    name, head = row[0], row[HEAD_COLUMNS - 1]
    if head is not None and row[HEAD_COLUMNS] is None:
        raise Corrupt(f"the head of thread {name!r}", "its checkpoint is missing")
    found = None if head is None else to_checkpoint(row[HEAD_COLUMNS:])
    return to_headed_thread(row[:HEAD_COLUMNS], found)


def to_headed_thread(row: Row, found: Checkpoint | None) -> ThreadRecord:
    """The columns of a thread itself, and its head."""
    (name, kind, owner, agent, metadata, family, forked_thread, forked_checkpoint,
     created_at, updated_at, deleted_at, changed, number, _) = row  # fmt: skip
    return ThreadRecord(
        id=name,
        kind=kind,
        owner=owner,
        agent=agent,
        head=found,
        forked_from=Origin(forked_thread, forked_checkpoint) if forked_thread else None,
        created_at=created_at,
        updated_at=updated_at,
        deleted_at=deleted_at,
        changed=changed,
        family=family,
        number=number,
        encoded_metadata=metadata,
    )
