"""Resolve the threads and checkpoints that people name on the command line.

``THREAD``, ``THREAD@...`` or an id: `chat`, `chat@~3`, `chat@12`, `chat@label:golden`,
`chat@{1}`, `chat@ID`. The part after the ``@`` is a reference of the library. A thread
may be named by the id of its conversation, agent or document.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click
from msgspec.structs import replace

from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._engine.records import agent_checkpoints, agents
from holdfast._values import nearest
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast._values.reference import HEAD
from holdfast.cli._thread_names import did_you_mean, find_thread, unknown
from holdfast.errors import NotFound
from holdfast.views.references import Revision, line_of, newest_shared

MOST_NAMED = 5
# In how many checkpoints a label or tag is looked for that resembles another.
MOST_LOOKED_AT = 500
RANGE = ".."
FORK = "..."
_MARKS = ("label:", "tag:")


def locate(store: Store, text: str) -> Revision:
    """The checkpoint that a text means."""
    if text.startswith((HEAD, *_MARKS)):
        thread = thread_named(store, None)
        return Revision(thread, _get(thread, text))
    for name, reference in _readings(text):
        found = find_thread(store, name)
        if found is not None:
            return replace(_in_thread(*found, reference), named=name)
    if HEAD in text:
        raise unknown(store, text.rpartition(HEAD)[0])
    return _by_id(store, text)


def head_of(thread: Thread) -> Revision:
    """The head of a thread."""
    return Revision(thread, thread.get())


def thread_named(store: Store, name: str | None) -> Thread:
    """The thread of a name; without one, the only thread there is."""
    if name is not None:
        named = find_thread(store, name)
        if named is None:
            raise unknown(store, name)
        return named[0]
    found = store.threads(limit=MOST_NAMED + 1)
    if not found:
        raise _empty()
    if len(found) > 1:
        names = ", ".join(record.id for record in found[:MOST_NAMED])
        more = ", ..." if len(found) > MOST_NAMED else ""
        raise click.UsageError(f"name a thread, one of: {names}{more}")
    return store.thread(found[0].id)


def recorded_thread(store: Store, name: str | None) -> Thread:
    """Like `thread_named`, also a thread that has a journal and no checkpoint yet."""
    found = find_thread(store, name, unsaved=True) if name is not None else None
    return found[0] if found else thread_named(store, name)


def locate_in(store: Store, thread: Thread, text: str) -> Checkpoint:
    """The checkpoint that a text means; ``@...`` and marks are those of the thread."""
    if text.startswith((HEAD, *_MARKS)):
        return _get(thread, text)
    return locate(store, text).checkpoint


def last_used(store: Store) -> tuple[Revision, bool]:
    """The head of the thread that was used last, and whether there are others."""
    found = store.threads(limit=2)
    if not found:
        raise _empty()
    record = found[0]
    start = _in_thread(store.thread(record.id), record, HEAD)
    return start, len(found) > 1


def locate_range(store: Store, text: str) -> tuple[Revision, Revision] | None:
    """The ends of a range ``A..B``; an end left out is the head of the thread."""
    first, dots, last = text.partition(RANGE)
    if not dots or store.thread(text).about is not None:
        return None
    if last.startswith("."):
        raise click.UsageError("A...B is for diff; write A..B")
    if not last:
        old = locate(store, first or HEAD)
        return old, head_of(old.thread)
    new = locate(store, last)
    return locate(store, first) if first else head_of(new.thread), new


def locate_fork(store: Store, text: str) -> tuple[Revision, Revision] | None:
    """The ends of ``A...B``: the newest checkpoint that A and B share, and B."""
    first, dots, last = text.partition(FORK)
    if not (dots and first and last) or store.thread(text).about is not None:
        return None
    a, b = locate(store, first), locate(store, last)
    shared = newest_shared(line_of(a), line_of(b))
    if shared is None:
        raise NotFound(f"{first} and {last} have no checkpoint in common")
    return Revision(b.thread, shared), b


def _in_thread(thread: Thread, record: ThreadRecord, reference: str) -> Revision:
    head = record.head if reference == HEAD else None
    checkpoint = head or _get(thread, reference)
    return Revision(thread, checkpoint, record)


def _get(thread: Thread, reference: str) -> Checkpoint:
    try:
        return thread.get(reference)
    except NotFound as error:
        raise _near_mark(thread, reference, error) from None


def _near_mark(thread: Thread, reference: str, error: NotFound) -> NotFound:
    """The error for a label or tag that does not exist, with one that resembles it."""
    kind, colon, name = reference.partition(":")
    if f"{kind}{colon}" not in _MARKS:
        return error
    near = near_mark(thread, kind, name)
    if near is None:
        return error
    text = f"thread {thread.id} has no {kind} {name}; did you mean {near}?"
    return NotFound(text, thread=thread.id, reference=reference)


def near_mark(thread: Thread, kind: str, name: str) -> str | None:
    """The label or tag of a thread's newest checkpoints that resembles another."""
    newest = thread.history(MOST_LOOKED_AT, all=True)
    known = (
        {tag for checkpoint in newest for tag in checkpoint.tags}
        if kind == "tag"
        else {checkpoint.label for checkpoint in newest if checkpoint.label}
    )
    return next(iter(nearest.nearest(name, sorted(known), most=1)), None)


def _readings(text: str) -> Iterator[tuple[str, str]]:
    """Every way to split a text into a thread and a reference, longest name first."""
    yield text, HEAD
    end = len(text)
    while (end := text.rfind(HEAD, 1, end)) > 0:
        yield text[:end], _reference(text[end + 1 :])


def _reference(rest: str) -> str:
    from_head = not rest or rest[0] in "~^{" or rest.isdigit()
    return f"{HEAD}{rest}" if from_head else rest


def _by_id(store: Store, text: str) -> Revision:
    try:
        checkpoint = store.get(text)
    except NotFound as error:
        raise (error if error.matches else unknown(store, text)) from None
    return Revision(store.thread(checkpoint.thread), checkpoint)


def _empty() -> NotFound:
    return NotFound("the store has no threads yet; save to one first")


# --- agents ---------------------------------------------------------------------------


def check_agent(store: Store, name: str) -> None:
    """Refuse the name of an agent that does not exist and has no checkpoints."""
    if store.agents.thread(name).about or store.agents.checkpoints(name, limit=1):
        return
    known = (record.agent or "" for record in store.threads(kind=agents.KIND))
    hint = did_you_mean(name, known, "holdfast threads --kind agent lists them all")
    raise NotFound(f"there is no agent {name}; {hint}", thread=agents.thread_of(name))


def checkpoint_of_agent(store: Store, agent: str, text: str) -> Checkpoint:
    """The checkpoint of an agent that a text means: a name, an id or a step."""
    try:
        return store.runner.run(agent_checkpoints.find, agent, text)
    except NotFound as error:
        if error.matches:
            raise
        names = (checkpoint.name for checkpoint in store.agents.checkpoints(agent))

        listing = shlex.join(["holdfast", "restore", agent])
        hint = did_you_mean(text, names, f"{listing} lists them")
        message = f"agent {agent} has no checkpoint {text}; {hint}"
        raise NotFound(message, thread=error.thread, reference=text) from None
