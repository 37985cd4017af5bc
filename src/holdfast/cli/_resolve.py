"""Resolve the threads and checkpoints that people name on the command line.

``THREAD``, ``THREAD@...`` or an id: `chat`, `chat@~3`, `chat@12`, `chat@label:golden`,
`chat@{1}`, `chat@ID`. The part after the ``@`` is a reference of the library.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

import click

from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._engine.context import Context
from holdfast._engine.records import agent_checkpoints, agents
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast._values.reference import HEAD
from holdfast.errors import NotFound
from holdfast.views.references import Revision, line_of, newest_shared

MOST_NAMED = 5
RANGE = ".."
FORK = "..."
_MARKS = ("label:", "tag:")


def locate(store: Store, text: str) -> Revision:
    """The checkpoint that a text means."""
    if text.startswith((HEAD, *_MARKS)):
        thread = thread_named(store, None)
        return Revision(thread, thread.get(text))
    for name, reference in _readings(text):
        thread = store.thread(name)
        record = thread.about
        if record is not None:
            return _in_thread(thread, record, reference)
    if HEAD in text:
        raise _unknown(store, text.rpartition(HEAD)[0])
    return _by_id(store, text)


def head_of(thread: Thread) -> Revision:
    """The head of a thread."""
    return Revision(thread, thread.get())


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


def recorded_thread(store: Store, name: str | None) -> Thread:
    """As `thread_named`, also a thread that has a journal and no checkpoint yet."""
    if name is None or store.runner.run(Context.find_thread, name) is None:
        return thread_named(store, name)
    return store.thread(name)


def locate_in(store: Store, thread: Thread, text: str) -> Checkpoint:
    """The checkpoint that a text means; ``@...`` and marks are those of the thread."""
    if text.startswith((HEAD, *_MARKS)):
        return thread.get(text)
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
    checkpoint = head or thread.get(reference)
    return Revision(thread, checkpoint, record)


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
        raise (error if error.matches else _unknown(store, text)) from None
    return Revision(store.thread(checkpoint.thread), checkpoint)


def _empty() -> NotFound:
    return NotFound("the store has no threads yet; save to one first")


def _unknown(store: Store, name: str) -> NotFound:
    names = [record.id for record in store.threads()]
    hint = _hint(name, names, "holdfast threads lists them all")
    return NotFound(f"there is no thread or checkpoint {name}; {hint}", thread=name)


def _hint(name: str, names: Iterable[str], otherwise: str) -> str:
    near = get_close_matches(name, list(names), n=1)
    return f"did you mean {near[0]}?" if near else otherwise


# --- agents ---------------------------------------------------------------------------


def check_agent(store: Store, name: str) -> None:
    """Refuse the name of an agent that does not exist and has no checkpoints."""
    if store.agents.thread(name).about or store.agents.checkpoints(name, limit=1):
        return
    known = (record.agent or "" for record in store.threads(kind=agents.KIND))
    hint = _hint(name, known, "holdfast threads --kind agent lists them all")
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
        hint = _hint(text, names, f"{listing} lists them")
        message = f"agent {agent} has no checkpoint {text}; {hint}"
        raise NotFound(message, thread=error.thread, reference=text) from None
