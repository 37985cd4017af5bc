"""A damaged store of many tenants: the salvage has all that is whole, of all scopes."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator

import holdfast
from holdfast import Store
from holdfast._values.records import SEPARATOR
from holdfast.testing.trials.kills import ignore_repairs
from holdfast.testing.trials.row import Task, Trials
from holdfast.testing.trials.scenario import Source, address, copy_folder, problems_of

# The name of the last one begins with that of another.
SCOPES = ("", "acme", "globex", "globex/eu")
THREADS = 3
# Around what is damaged: no page of a file has it together with another thread.
PADDING = "y" * 20_000


def scopes_rescued(task: Task) -> Trials:
    """Damage one thread of a copy, salvage it, and look for all others."""
    ignore_repairs()
    start = task.target.path("start")
    os.mkdir(start)
    url = address(start, task.target.place)
    _build(url)
    with holdfast.open(url, cache_size=0) as store:
        truth = _content(store)
    with_text = sorted(name for name in truth if "fork" not in name)
    wrong: list[str] = []
    for number in range(task.count):
        victim = task.chance.choice(with_text)
        damaged = copy_folder(start, task.target.path("damaged"), task.target.place)
        _damage(damaged, victim, task.chance)
        wrong += [
            f"{victim!r} damaged: {what}" for what in _misses(task, truth, victim)
        ]
        task.done(number + 1)
    return Trials(task.count, wrong)


def _build(url: str) -> None:
    with holdfast.open(url, **Source("rescued", 1_000_000).options("normal")) as store:
        for scope in SCOPES:
            part = store.scope(scope) if scope else store
            for n in range(THREADS):
                thread = part.thread(f"thread {n}", owner="ann", agent="bob")
                name = f"{scope}{SEPARATOR}{thread.id}" if scope else thread.id
                thread.append(log=["first"])
                thread.fork(f"fork {n}").append(log=["of the fork"])
                thread.save({"text": PADDING + _mark(name) + PADDING})
                thread.record("paid", {"scope": scope})


def _mark(name: str) -> str:
    """What only the text of one thread has, without a separator for JSON to escape."""
    return f"<the text of {name.replace(SEPARATOR, ' in ')}>"


def _content(store: Store) -> dict[str, object]:
    return {
        record.id: (
            record.owner,
            record.agent,
            record.forked_from,
            store.thread(record.id).load(),
            store.thread(record.id).journal(),
        )
        for record in store.threads(limit=None)
    }


def _damage(url: str, victim: str, chance: random.Random) -> None:
    """Flip a bit of what a thread's text is known by, wherever it is stored."""
    mark = _mark(victim).encode()
    place = url.removeprefix("dir:")
    if os.path.isdir(place) and chance.random() < 0.5:  # noqa: PLR2004 - half of them
        shutil.rmtree(os.path.join(place, ".holdfast"))
    for path in list(_files(place)):
        with open(path, "r+b") as file:
            data = file.read()
            at = data.find(mark)
            if at >= 0:
                at += chance.randrange(len(mark))
                file.seek(at)
                file.write(bytes([data[at] ^ 1 << chance.randrange(8)]))


def _files(place: str) -> Iterator[str]:
    if os.path.isfile(place):
        yield place
    for folder, _, names in os.walk(place):
        yield from (os.path.join(folder, name) for name in names)


def _misses(task: Task, truth: dict[str, object], victim: str) -> Iterator[str]:
    target, saved = task.target, task.target.path("saved.db")
    damaged = address(target.path("damaged"), target.place)
    with target.open_at(damaged, read_only=True, cache_size=0) as store:
        lost = store.salvage(saved).lost
    if not lost:
        yield "the salvage lost nothing"
    with holdfast.open(saved, cache_size=0) as store:
        found = _content(store)
        scopes = {
            scope: {thread.id for thread in store.scope(scope).threads(limit=None)}
            for scope in SCOPES
            if scope
        }
        yield from problems_of(store)
    target.discard("saved.db")
    for name, value in truth.items():
        if name != victim and found.get(name) != value:
            yield f"thread {name!r} is {'changed' if name in found else 'missing'}"
        scope, _, own = name.rpartition(SEPARATOR)
        if scope and name != victim and own not in scopes[scope]:
            yield f"thread {own!r} is not found in scope {scope!r}"
