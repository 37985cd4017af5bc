"""Threads and checkpoints as people name them on the command line.

``THREAD``, ``THREAD@...`` or an id: `chat`, `chat@~3`, `chat@12`, `chat@label:golden`,
`chat@{1}`, `chat@ID`. What stands behind the ``@`` is a reference of the library.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

import click
import msgspec

from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._values.records import Checkpoint
from holdfast._values.reference import HEAD
from holdfast.cli._completion import REFERENCE, THREAD
from holdfast.errors import NotFound

__all__ = [
    "REFERENCE",
    "THREAD",
    "Place",
    "last_used",
    "locate",
    "locate_range",
    "short_id",
    "shown_reference",
    "thread_named",
]

SHORTEST = 7
MOST_NAMED = 5
RANGE = ".."
FORK = "..."
CHUNK = 200
_MARKS = ("label:", "tag:")


class Place(msgspec.Struct, frozen=True):
    """A checkpoint, and the thread it was named with."""

    thread: Thread
    checkpoint: Checkpoint


def locate(store: Store, text: str) -> Place:
    """The checkpoint that a text means."""
    if text.startswith((HEAD, *_MARKS)):
        thread = thread_named(store, None)
        return Place(thread, thread.get(text))
    for name, reference in _readings(text):
        thread = store.thread(name)
        if thread.about is not None:
            return Place(thread, thread.get(reference))
    if HEAD in text:
        raise _unknown(store, text.rpartition(HEAD)[0])
    return _by_id(store, text)


def thread_named(store: Store, name: str | None) -> Thread:
    """The thread of a name; without one, the only thread there is."""
    if name is not None:
        thread = store.thread(name)
        if thread.about is None:
            raise _unknown(store, name)
        return thread
    found = store.threads(limit=MOST_NAMED + 1)
    if not found:
        raise _empty()
    if len(found) > 1:
        names = ", ".join(record.id for record in found[:MOST_NAMED])
        more = ", ..." if len(found) > MOST_NAMED else ""
        raise click.UsageError(f"name a thread, one of: {names}{more}")
    return store.thread(found[0].id)


def last_used(store: Store) -> Thread:
    """The thread that was used last."""
    found = store.threads(limit=1)
    if not found:
        raise _empty()
    return store.thread(found[0].id)


def locate_range(store: Store, text: str) -> tuple[Place, Place] | None:
    """The ends of a range ``A..B``; one that is left out is the head of the thread."""
    first, dots, last = text.partition(RANGE)
    if not dots or store.thread(text).about is not None:
        return None
    if last.startswith("."):
        raise click.UsageError("A...B is for diff; write A..B")
    if not last:
        old = locate(store, first or HEAD)
        return old, Place(old.thread, old.thread.get())
    new = locate(store, last)
    old = locate(store, first) if first else Place(new.thread, new.thread.get())
    return old, new


def locate_fork(store: Store, text: str) -> tuple[Place, Place] | None:
    """The ends of ``A...B``: where the lines of both parted, and B."""
    first, dots, last = text.partition(FORK)
    if not (dots and first and last) or store.thread(text).about is not None:
        return None
    a, b = locate(store, first), locate(store, last)
    shared = parted(line_of(a), line_of(b))
    if shared is None:
        raise NotFound(f"{first} and {last} have no checkpoint in common")
    return Place(b.thread, shared), b


def line_of(place: Place) -> Iterator[Checkpoint]:
    """A checkpoint and its ancestors."""
    yield place.checkpoint
    last = place.checkpoint
    while page := place.thread.history(CHUNK, before=last):
        yield from page
        last = page[-1]


def parted(a: Iterator[Checkpoint], b: Iterator[Checkpoint]) -> Checkpoint | None:
    """The newest checkpoint that two lines share."""
    one, other = next(a, None), next(b, None)
    while one is not None and other is not None and one.id != other.id:
        if one.step >= other.step:
            one = next(a, None)
        else:
            other = next(b, None)
    return one if other is not None else None


def shown_reference(store: Store, checkpoint: Checkpoint, thread: Thread) -> str:
    """How to name a checkpoint: by its step on the line of a head, else by its id."""
    try:
        if thread.get(f"@{checkpoint.step}").id == checkpoint.id:
            return f"{thread.id}@{checkpoint.step}"
    except NotFound:
        pass  # the line is shorter, or the thread is gone
    return short_id(store, checkpoint.id)


def short_id(store: Store, id_: str) -> str:
    """The shortest beginning of an id that no other has."""
    shortest, longest = min(SHORTEST, len(id_)), len(id_)
    while shortest < longest:
        middle = (shortest + longest) // 2
        try:
            store.get(id_[:middle])
            longest = middle
        except NotFound:
            shortest = middle + 1
    return id_[:longest]


def _readings(text: str) -> Iterator[tuple[str, str]]:
    """Every way to part a text into a thread and a reference, longest name first."""
    yield text, HEAD
    end = len(text)
    while (end := text.rfind(HEAD, 1, end)) > 0:
        yield text[:end], _reference(text[end + 1 :])


def _reference(rest: str) -> str:
    from_head = not rest or rest[0] in "~^{" or rest.isdigit()
    return f"{HEAD}{rest}" if from_head else rest


def _by_id(store: Store, text: str) -> Place:
    try:
        checkpoint = store.get(text)
    except NotFound as error:
        raise (error if error.matches else _unknown(store, text)) from None
    return Place(store.thread(checkpoint.thread), checkpoint)


def _empty() -> NotFound:
    return NotFound("the store has no threads yet; save to one first")


def _unknown(store: Store, name: str) -> NotFound:
    names = [record.id for record in store.threads()]
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else "holdfast threads lists them all"
    return NotFound(f"there is no thread or checkpoint {name}; {hint}", thread=name)
