"""What `holdfast log` lists: a line, a range, what was rewound too, or a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, takewhile

import click
import msgspec

from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast.cli._lineage import Kin, related
from holdfast.cli._names import Place, last_used, line_of, locate, locate_range
from holdfast.cli._session import Session
from holdfast.errors import NotFound


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The question."""

    what: str | None
    limit: int
    graph: bool = False
    all: bool = False
    since: int | None = None
    tag: str | None = None
    label: str | None = None

    @property
    def is_filtered(self) -> bool:
        """Whether some are left out between others."""
        return self.tag is not None or self.label is not None


class Found(msgspec.Struct, frozen=True):
    """The answer: checkpoints, newest first; of a graph also the threads in it."""

    thread: Thread
    kin: list[Kin]
    family: tuple[ThreadRecord, ...] | None = None


def find(session: Session, store: Store, asked: Asked) -> Found:
    """Look up what was asked for."""
    ends = locate_range(store, asked.what) if asked.what else None
    if asked.graph and (asked.is_filtered or ends):
        raise click.UsageError("--graph draws everything; leave out what chooses")
    if ends is not None and asked.all:
        raise click.UsageError("a range is a line; leave --all out")
    if ends is not None:
        return _range(ends, asked)
    place = _place(session, store, asked.what)
    return (_tree if asked.graph else _history)(place, asked)


def _place(session: Session, store: Store, what: str | None) -> Place:
    if what is not None:
        return locate(store, what)
    thread = last_used(store)
    if len(store.threads(limit=2)) > 1:
        session.out.note(f"thread {thread.id}, which was used last")
    return Place(thread, thread.get())


def _tree(place: Place, asked: Asked) -> Found:
    # Heads first: what is saved meanwhile then hangs on a line, and nothing is missing.
    family = place.thread.family()
    checkpoints = place.thread.tree(asked.limit)
    kin = related(_recent(checkpoints, asked), family)
    return Found(place.thread, kin, tuple(family))


def _history(place: Place, asked: Asked) -> Found:
    thread = place.thread
    head = thread.head
    is_head = head is not None and head.id == place.checkpoint.id
    page = thread.history(
        asked.limit if is_head or asked.is_filtered else max(asked.limit - 1, 1),
        before=None if is_head else place.checkpoint,
        all=asked.all,
        tag=asked.tag,
        label=asked.label,
    )
    first = [] if is_head or asked.is_filtered else [place.checkpoint]
    checkpoints = _recent(islice(chain(first, page), asked.limit), asked)
    about = thread.about
    if asked.all and is_head and not asked.is_filtered and about is not None:
        return Found(thread, related(checkpoints, [about]))
    contiguous = not asked.all and not asked.is_filtered
    return Found(thread, list(_on_line(thread, checkpoints, contiguous=contiguous)))


def _range(ends: tuple[Place, Place], asked: Asked) -> Found:
    old, new = ends
    if asked.is_filtered:
        raise click.UsageError("a range is whole; leave --tag and --label out")
    beyond = _beyond(line_of(old), line_of(new))
    checkpoints = islice(_recent(beyond, asked), asked.limit)
    return Found(new.thread, list(_on_line(new.thread, checkpoints, contiguous=True)))


def _beyond(
    old: Iterator[Checkpoint], new: Iterator[Checkpoint]
) -> Iterator[Checkpoint]:
    """What is on one line and not on the other, from which it parted."""
    known = next(old, None)
    for checkpoint in new:
        while known is not None and known.step > checkpoint.step:
            known = next(old, None)
        if known is not None and known.id == checkpoint.id:
            return
        yield checkpoint


def _recent(checkpoints: Iterable[Checkpoint], asked: Asked) -> Iterator[Checkpoint]:
    since = asked.since
    return takewhile(lambda c: since is None or c.saved_at >= since, checkpoints)


def _on_line(
    thread: Thread, checkpoints: Iterable[Checkpoint], *, contiguous: bool
) -> Iterator[Kin]:
    """Checkpoints, each with whether it leads to the head of a thread.

    Of a line without gaps, all behind one that does so lead there too.
    """
    head = thread.head
    known = False
    for checkpoint in checkpoints:
        is_head = head is not None and head.id == checkpoint.id
        leads = (contiguous and known) or is_head or _leads(thread, checkpoint)
        known = leads
        names = (thread.id,)
        yield Kin(checkpoint, names if is_head else (), names if leads else ())


def _leads(thread: Thread, checkpoint: Checkpoint) -> bool:
    try:
        return thread.get(f"@{checkpoint.step}").id == checkpoint.id
    except NotFound:
        return False
