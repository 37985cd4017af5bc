"""The threads of the store that lines go to, and which saves are missing there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from holdfast._engine.records import agent_checkpoints, agents, conversations, documents
from holdfast._messages import claude_transcript
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast.importers._reader import Line, Save, storable_name

# The key in the metadata of threads and checkpoints that names their source.
STAMP = "imported"

THREAD = "thread"
PREFIXES = {
    THREAD: "",
    agents.KIND: agents.PREFIX,
    conversations.KIND: conversations.PREFIX,
    documents.KIND: documents.PREFIX,
}
_CLAUDES = dict.fromkeys(claude_transcript.KINDS, claude_transcript.PREFIX)
_RESERVED = (*filter(None, PREFIXES.values()), agent_checkpoints.PREFIX, "pin:")

DELETED = "was deleted from the store; it was not brought back"
FOREIGN = "a thread of that name is there already and not from this source"
CHANGED = "its checkpoint {id!r} is there with other content; it was left as it is"
_GAP = "{n} of its checkpoints are older than what is there, and were left out"
CONTINUED = "was worked on since it was imported; {n} newer checkpoints were left out"


class ImportRefused(Exception):
    """Something that cannot be put into the store; the text says why."""


class MissingSaves(msgspec.Struct, frozen=True):
    """The saves that are not in the store yet; they continue ``after`` a checkpoint."""

    saves: Sequence[Save]
    after: Checkpoint | None = None
    there: Sequence[Save] = ()
    problem: str | None = None


def names_for(line: Line) -> list[str]:
    """Names that a thread may get; the second if another agent has the first."""
    prefix = {**PREFIXES, **_CLAUDES}.get(line.kind, f"{line.kind}:")
    name = prefix + storable_name(line.id)
    if line.kind == THREAD and name.startswith(_RESERVED):
        # With this prefix it would be listed as a conversation, an agent or a document.
        return [storable_name("\0" + name)]
    if line.kind == conversations.KIND and line.agent:
        return [name, prefix + storable_name(f"{line.id}@{line.agent}")]
    return [name]


def owner_of(line: Line) -> str | None:
    """The owner of a line's thread."""
    return None if line.owner is None else storable_name(line.owner)


def agent_of(line: Line) -> str | None:
    """The agent of a line's thread; some sources write "" for no agent."""
    return storable_name(line.agent) if line.agent else None


def origin_of(line: Line) -> dict[str, str]:
    """The source's names of a thread, for the thread's metadata."""
    about = {"id": line.id, "owner": line.owner, "agent": line.agent}
    return {name: value for name, value in about.items() if value is not None}


def is_living(record: ThreadRecord | None) -> bool:
    """True if a thread exists and is not deleted."""
    return record is not None and record.deleted_at is None


def is_of(line: Line, record: ThreadRecord | None) -> bool:
    """True if a living thread came from a line, or could have."""
    if record is None or not is_living(record):
        return False
    stamp = stamp_of(record.metadata)
    if stamp is not None:
        return origin_of(line).items() <= stamp.items()
    found = record.kind, record.owner, record.agent
    return found == (line.kind, owner_of(line), agent_of(line))


def stamp_of(metadata: dict[str, object]) -> dict[str, Any] | None:
    """The source of a thread or checkpoint, ``None`` if it was not imported."""
    stamp = metadata.get(STAMP)
    return cast("dict[str, Any]", stamp) if isinstance(stamp, dict) else None


def missing(
    record: ThreadRecord | None,
    saves: Sequence[Save],
    stored: Sequence[Checkpoint | None],
    newest: Checkpoint | None,
) -> MissingSaves:
    """The saves of a line that have to be written, always on top of the thread.

    ``stored`` are the thread's checkpoints with the ids of the saves, ``newest`` is its
    newest checkpoint.
    """
    if record is not None and not is_living(record):
        return MissingSaves((), problem=DELETED)
    if record is None or record.head is None:
        return MissingSaves(saves)
    places = [index for index, found in enumerate(stored) if found is not None]
    if not places and not _is_next(record, saves):
        return MissingSaves((), problem=FOREIGN)
    there = [saves[index] for index in places]
    rest = saves[places[-1] + 1 :] if places else saves
    problem = _problem(saves, stored, places)
    untouched = newest is not None and newest.seq == record.head.seq
    if rest and not (untouched and stamp_of(record.head.metadata)):
        return MissingSaves((), None, there, problem or CONTINUED.format(n=len(rest)))
    return MissingSaves(rest, record.head, there, problem)


def _is_next(record: ThreadRecord, saves: Sequence[Save]) -> bool:
    """True if all saves are newer versions of the imported ones."""
    return stamp_of(record.metadata) is not None and all(s.is_version for s in saves)


def _problem(
    saves: Sequence[Save], stored: Sequence[Checkpoint | None], places: list[int]
) -> str | None:
    for save, found in zip(saves, stored, strict=True):
        stamp = stamp_of(found.metadata) if found else {"digest": save.digest}
        if stamp is None or stamp.get("digest") != save.digest:
            return CHANGED.format(id=save.id)
    gap = places[-1] + 1 - len(places) if places else 0
    return _GAP.format(n=gap) if gap else None
