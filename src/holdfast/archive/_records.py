"""The records of an archive as JSON, and back; decoding checks every record.

Fields are in the order of the forms, and those that are none or empty are left out, so
that a record has exactly one text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from holdfast._port import Adoption
from holdfast._values.records import (
    Checkpoint,
    Entry,
    Move,
    Origin,
    Run,
    ThreadRecord,
    checked_name,
    checked_stored_name,
)
from holdfast._values.reference import checked_id
from holdfast._values.runs import BEFORE_FILES
from holdfast._values.typed import prepare

Number = Annotated[int, Meta(ge=1, le=1 << 62)]
Count = Annotated[int, Meta(ge=0, le=1 << 62)]
Time = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
SegmentNumber = Annotated[int, Meta(ge=0, le=(1 << 32) - 1)]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]

F = TypeVar("F", bound=msgspec.Struct)


class _Form(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A JSON object that may have only the declared fields."""


class Sizes(_Form, frozen=True):
    """The frame ``family``: how many frames of each kind follow."""

    threads: Number
    checkpoints: Count
    entries: Count
    moves: Count
    segments: Count


class ThreadForm(_Form, frozen=True):
    number: Number
    name: str
    kind: str
    changed: Number
    created_at: Time
    updated_at: Time
    head: Number | None = None
    owner: str | None = None
    agent: str | None = None
    deleted_at: Time | None = None
    forked_from: Origin | None = None
    metadata: str = ""


class CheckpointForm(_Form, frozen=True):
    seq: Number
    id: str
    thread: Number
    step: Number
    saved_at: Time
    kind: str
    size: Count
    sha256: Digest
    manifest: str
    parent: Number | None = None
    link: Digest | None = None
    label: str | None = None
    tags: tuple[str, ...] = ()
    runs: tuple[tuple[SegmentNumber, SegmentNumber], ...] = ()
    metadata: str = ""


class EntryForm(_Form, frozen=True):
    seq: Number
    thread: Number
    key: str
    recorded_at: Time
    value: str
    checkpoint: str = ""


class MoveForm(_Form, frozen=True):
    seq: Number
    thread: Number
    kind: str
    moved_at: Time
    source: Number | None = None
    target: Number | None = None


FORMS: Mapping[str, type[_Form]] = {
    "thread": ThreadForm,
    "checkpoint": CheckpointForm,
    "entry": EntryForm,
    "move": MoveForm,
}
prepare(Sizes, *FORMS.values())


def encoded(form: msgspec.Struct) -> bytes:
    """The text of a form."""
    return msgspec.json.encode(form)


def decoded(text: bytes, form: type[F]) -> F:
    """A form from its text; raises `ValueError` for any other text."""
    found = msgspec.json.decode(text, type=form)
    if encoded(found) != text:
        raise ValueError("it is not written as archives are")
    return found


# --- to forms -------------------------------------------------------------------------


def forms_of(family: Adoption) -> Iterator[tuple[str, _Form]]:
    """The records of a family, in the order of an archive."""
    seqs = {checkpoint.id: checkpoint.seq for checkpoint in family.checkpoints}
    numbers = {t.id: t.number for t in family.threads if t.deleted_at is None}
    for thread in family.threads:
        yield "thread", _thread_form(thread)
    for checkpoint in family.checkpoints:
        yield "checkpoint", _checkpoint_form(checkpoint, seqs)
    for entry in family.entries:
        yield "entry", _entry_form(entry, numbers[entry.thread])
    for move in family.moves:
        yield "move", _move_form(move, numbers[move.thread], seqs)


def _thread_form(thread: ThreadRecord) -> ThreadForm:
    return ThreadForm(
        number=thread.number,
        name=thread.id,
        kind=thread.kind,
        changed=thread.changed,
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        head=thread.head.seq if thread.head else None,
        owner=thread.owner,
        agent=thread.agent,
        deleted_at=thread.deleted_at,
        forked_from=thread.forked_from,
        metadata=thread.encoded_metadata.decode(),
    )


def _checkpoint_form(c: Checkpoint, seqs: Mapping[str, int]) -> CheckpointForm:
    return CheckpointForm(
        seq=c.seq,
        id=c.id,
        thread=c.thread_number,
        step=c.step,
        saved_at=c.saved_at,
        kind=c.kind,
        size=c.size,
        sha256=c.sha256.hex(),
        manifest=c.manifest.decode(),
        parent=None if c.parent is None else seqs[c.parent],
        link=c.link.hex() if c.link else None,
        label=c.label,
        tags=c.tags,
        runs=tuple((run.first, run.last) for run in c.runs),
        metadata=c.encoded_metadata.decode(),
    )


def _entry_form(entry: Entry, thread: int) -> EntryForm:
    return EntryForm(
        seq=entry.seq,
        thread=thread,
        key=entry.key,
        recorded_at=entry.recorded_at,
        value=entry.data.decode(),
        checkpoint=entry.checkpoint,
    )


def _move_form(move: Move, thread: int, seqs: Mapping[str, int]) -> MoveForm:
    return MoveForm(
        seq=move.seq,
        thread=thread,
        kind=move.kind,
        moved_at=move.moved_at,
        source=seqs.get(move.source or ""),
        target=seqs.get(move.target or ""),
    )


# --- from forms -----------------------------------------------------------------------


class Forms(msgspec.Struct):
    """The records of one family as they were read."""

    threads: list[ThreadForm] = []
    checkpoints: list[CheckpointForm] = []
    entries: list[EntryForm] = []
    moves: list[MoveForm] = []


def family_of(forms: Forms) -> Adoption:
    """The records; `ValueError`, `KeyError` or `Unstorable` if they are invalid."""
    family = min(thread.number for thread in forms.threads)
    names = {thread.number: thread.name for thread in forms.threads}
    living = {t.number: t.name for t in forms.threads if t.deleted_at is None}
    found: dict[int, Checkpoint] = {}
    for form in forms.checkpoints:
        found[form.seq] = _checkpoint(form, family, names[form.thread], found)
    return Adoption(
        family=family,
        threads=tuple(_thread(form, family, found) for form in forms.threads),
        checkpoints=tuple(found.values()),
        entries=tuple(_entry(form, living[form.thread]) for form in forms.entries),
        moves=tuple(_move(form, living[form.thread], found) for form in forms.moves),
    )


def _thread(
    form: ThreadForm, family: int, found: Mapping[int, Checkpoint]
) -> ThreadRecord:
    for name in (form.name, form.kind, *(form.forked_from or ())):
        checked_stored_name(name)
    for name in (form.owner, form.agent):
        if name is not None:
            checked_stored_name(name)
    return ThreadRecord(
        id=form.name,
        kind=form.kind,
        owner=form.owner,
        agent=form.agent,
        head=None if form.head is None else found[form.head],
        forked_from=form.forked_from,
        created_at=form.created_at,
        updated_at=form.updated_at,
        deleted_at=form.deleted_at,
        changed=form.changed,
        family=family,
        number=form.number,
        encoded_metadata=form.metadata.encode(),
    )


def _checkpoint(
    form: CheckpointForm, family: int, thread: str, found: Mapping[int, Checkpoint]
) -> Checkpoint:
    for name in (form.kind, *form.tags, *([form.label] if form.label else ())):
        checked_name(name)
    parent = None if form.parent is None else found[form.parent]
    if parent is not None and parent.step >= form.step:
        raise ValueError("a checkpoint is not behind its parent")
    runs = tuple(Run(first, last) for first, last in form.runs)
    if any(run.first > run.last for run in runs if run != BEFORE_FILES):
        raise ValueError("a run of segments ends before it begins")
    return Checkpoint(
        id=checked_id(form.id),
        thread=thread,
        parent=parent.id if parent else None,
        seq=form.seq,
        step=form.step,
        saved_at=form.saved_at,
        kind=form.kind,
        label=form.label,
        tags=form.tags,
        size=form.size,
        sha256=bytes.fromhex(form.sha256),
        family=family,
        thread_number=form.thread,
        runs=runs,
        manifest=form.manifest.encode(),
        encoded_metadata=form.metadata.encode(),
        link=bytes.fromhex(form.link) if form.link else None,
    )


def _entry(form: EntryForm, thread: str) -> Entry:
    checked_name(form.key)
    if form.checkpoint:
        checked_name(form.checkpoint)
    data = form.value.encode()
    return Entry(thread, form.checkpoint, form.key, data, form.recorded_at, form.seq)


def _move(form: MoveForm, thread: str, found: Mapping[int, Checkpoint]) -> Move:
    checked_name(form.kind)
    source = None if form.source is None else found[form.source].id
    target = None if form.target is None else found[form.target].id
    return Move(form.seq, thread, form.kind, source, target, form.moved_at)
