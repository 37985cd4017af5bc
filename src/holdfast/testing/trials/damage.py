"""Damage to the bytes of a store: every read gives the saved value or an error."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

import holdfast
from holdfast import HoldfastError, Store, Thread
from holdfast._values.records import SEPARATOR
from holdfast.testing.trials.kills import ignore_repairs
from holdfast.testing.trials.scenario import (
    OPERATIONS,
    Source,
    address,
    build,
    copy_folder,
    files_of,
    problems_of,
)
from holdfast.testing.trials.task import Target, Task, Trials

Read: TypeAlias = Callable[[Store], object]
Truth: TypeAlias = dict[str, tuple[Read, object]]
Damage: TypeAlias = Callable[[bytes, random.Random], tuple[bytes, str]]

BLOCK = 512
# Added to DAMAGES, so that most trials flip a bit and some do one of the others.
FLIPS = ("flip",) * 10


def truth_of(store: Store) -> Truth:
    """Every read of a store by name, with its result on the sound store."""
    return {name: (read, read(store)) for name, read in _reads(store).items()}


def _reads(store: Store) -> dict[str, Read]:
    reads: dict[str, Read] = {
        "threads": lambda store: store.threads(limit=None).items,
        "of an owner": lambda store: store.threads(owner="owner 1", limit=None).items,
        "changes": lambda store: store.changes(limit=10_000).items,
    }
    for thread in store.threads(limit=None):
        reads |= _reads_of(store.thread(thread.id))
    return reads


def _reads_of(thread: Thread) -> dict[str, Read]:
    name = thread.id
    reads: dict[str, Callable[[Thread], object]] = {
        "about": lambda thread: thread.about,
        "state": lambda thread: thread.load(),
        "history": lambda thread: thread.history(None, all=True).items,
        "line": lambda thread: thread.history(None).items,
        "journal": lambda thread: thread.journal(),
        "moves": lambda thread: thread.moves(None).items,
        "label": lambda thread: thread.find(label="kept"),
        "tag": lambda thread: thread.find(tag="t"),
    }
    for checkpoint in thread.history(None, all=True):
        reads |= _reads_at(checkpoint.id)
    return {f"{name}: {what}": _read_thread(name, read) for what, read in reads.items()}


def _read_thread(name: str, read: Callable[[Thread], object]) -> Read:
    return lambda store: read(store.thread(name))


def _reads_at(id_: str) -> dict[str, Callable[[Thread], object]]:
    return {
        f"{id_}: get": lambda thread: thread.get(id_),
        f"{id_}: state": lambda thread: thread.load(id_),
        f"{id_}: journal": lambda thread: thread.journal(checkpoint=id_),
    }


# --- kinds of damage ------------------------------------------------------------------


def _flipped(data: bytes, chance: random.Random) -> tuple[bytes, str]:
    """The data with one bit turned over, and where."""
    place = chance.randrange(len(data) * 8)
    damaged = bytearray(data)
    damaged[place // 8] ^= 1 << place % 8
    return bytes(damaged), f"bit {place % 8} of byte {place // 8}"


def _truncated(data: bytes, chance: random.Random) -> tuple[bytes, str]:
    """The data without its end, and how much is left."""
    size = chance.randrange(len(data))
    return data[:size], f"{size} of {len(data)} bytes left"


def _shortened(data: bytes, chance: random.Random) -> tuple[bytes, str]:
    """The data without some of its last bytes, and how much is left."""
    size = len(data) - chance.randrange(1, min(4096, len(data)))
    return data[:size], f"{size} of {len(data)} bytes left"


def _zeroed(data: bytes, chance: random.Random) -> tuple[bytes, str]:
    """The data with a block that was never written, and where."""
    return _without_block(data, chance.randrange(len(data) // BLOCK) * BLOCK)


def _zeroed_end(data: bytes, chance: random.Random) -> tuple[bytes, str]:
    """The data with a block near its end that was never written, and where."""
    return _without_block(data, len(data) - chance.randrange(1, 17) * BLOCK)


def _without_block(data: bytes, start: int) -> tuple[bytes, str]:
    end = start + BLOCK
    return data[:start] + bytes(BLOCK) + data[end:], f"zeros at {start}"


DAMAGES: Mapping[str, Damage] = MappingProxyType(
    {
        "flip": _flipped,
        "cut": _truncated,
        "cut-near-the-end": _shortened,
        "zeros": _zeroed,
        "zeros-near-the-end": _zeroed_end,
    }
)


class ReadOutcome:
    """The results of every read of a damaged store, and of `verify`."""

    def __init__(
        self, path: str, truth: Truth, opened: Callable[..., Store] = holdfast.open
    ) -> None:
        self.sound: set[str] = set()
        self.wrong: list[str] = []
        self.failed: dict[str, HoldfastError] = {}
        self.problems: list[str] = []
        try:
            store = opened(path, cache_size=0)
        except HoldfastError as error:
            self.failed["open"] = error
            return
        with store:
            for name, (read, value) in truth.items():
                self._try(store, name, read, value)
            self.problems = [str(problem) for problem in store.verify().problems]

    def _try(self, store: Store, name: str, read: Read, value: object) -> None:
        try:
            found = read(store)
        except HoldfastError as error:
            self.failed[name] = error
            return
        if found == value:
            self.sound.add(name)
        else:
            self.wrong.append(name)


# --- the row --------------------------------------------------------------------------


def build_more(url: str, threads: int = 6) -> None:
    """The store that is damaged: something of everything, in many threads."""
    build(url)
    with holdfast.open(url, **Source("more", 3_000_000).options()) as store:
        for name in ("save", "fork", "label", "tag", "record", "delete-checkpoint"):
            OPERATIONS[name](store)
        for n in range(threads):
            thread = store.thread(f"thread {n}", owner=f"owner {n % 2}")
            thread.append(log=[{"n": n, "text": "y" * 300}])
            thread.append(log=[{"n": n, "text": "z" * 3000}])


def bit_rot(task: Task) -> Trials:
    """Damage a copy of a sound store again and again, and read everything."""
    ignore_repairs()
    start = task.target.path("start")
    os.mkdir(start)
    url = address(start, task.target.place)
    build_more(url)
    with task.target.open_at(url, cache_size=0) as store:
        truth = truth_of(store)
    wrong: list[str] = []
    harmed = 0
    for number in range(task.count):
        damaged, where = _damaged(task.target, start, task.chance)
        outcome = ReadOutcome(damaged, truth, task.target.open_at)
        wrong += [f"{where}: {what}" for what in _misses(outcome)]
        harmed += bool(outcome.failed)
        task.done(number + 1)
    if not harmed:
        wrong.append("no damage was ever noticed")
    return Trials(task.count, wrong, f"{harmed:,} harmed something")


def _misses(outcome: ReadOutcome) -> Iterator[str]:
    if outcome.wrong:
        yield f"read wrongly without an error: {outcome.wrong[:3]}"
    if outcome.failed and not outcome.problems and "open" not in outcome.failed:
        yield "verify found nothing"


def _damaged(target: Target, start: str, chance: random.Random) -> tuple[str, str]:
    """A copy of the store with one of its files damaged, and where."""
    how = chance.choice((*FLIPS, *DAMAGES))
    url = copy_folder(start, target.path("rotten"), target.place)
    place = url.removeprefix("dir:")
    path = place
    if os.path.isdir(place):
        names = [name for name in os.listdir(place) if name.endswith(".jsonl")]
        path = os.path.join(place, chance.choice(sorted(names)))
        if how == "flip" and chance.random() < 0.5:  # noqa: PLR2004 - half of them
            shutil.rmtree(os.path.join(place, ".holdfast"))
    with open(path, "r+b") as file:
        data, where = DAMAGES[how](file.read().ljust(BLOCK), chance)
        file.seek(0)
        file.write(data)
        file.truncate()
    return url, f"{os.path.basename(path)}, {how}: {where}"


# The last name begins with another one.
SCOPES = ("", "acme", "globex", "globex/eu")
THREADS_EACH = 3
# Surrounds the damaged text, so that no page of the file holds another thread as well.
PADDING = "y" * 20_000


def scopes_rescued(task: Task) -> Trials:
    """Damage one thread of a copy, salvage the copy, and check all other threads."""
    ignore_repairs()
    start = task.target.path("start")
    os.mkdir(start)
    url = address(start, task.target.place)
    _build_scopes(url)
    with holdfast.open(url, cache_size=0) as store:
        truth = _content(store)
    with_text = sorted(name for name in truth if "fork" not in name)
    wrong: list[str] = []
    for number in range(task.count):
        victim = task.chance.choice(with_text)
        damaged = copy_folder(start, task.target.path("damaged"), task.target.place)
        _damage(damaged, victim, task.chance)
        wrong += [
            f"{victim!r} damaged: {what}" for what in _not_rescued(task, truth, victim)
        ]
        task.done(number + 1)
    return Trials(task.count, wrong)


def _build_scopes(url: str) -> None:
    with holdfast.open(url, **Source("rescued", 1_000_000).options("normal")) as store:
        for scope in SCOPES:
            part = store.scope(scope) if scope else store
            for n in range(THREADS_EACH):
                thread = part.thread(f"thread {n}", owner="ann", agent="bob")
                name = f"{scope}{SEPARATOR}{thread.id}" if scope else thread.id
                thread.append(log=["first"])
                thread.fork(f"fork {n}").append(log=["of the fork"])
                thread.save({"text": PADDING + _mark(name) + PADDING})
                thread.record("paid", {"scope": scope})


def _mark(name: str) -> str:
    """A text of one thread only; without the separator, which JSON would escape."""
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
    """Flip a bit of a thread's mark in every file that holds it."""
    mark = _mark(victim).encode()
    place = url.removeprefix("dir:")
    if os.path.isdir(place) and chance.random() < 0.5:  # noqa: PLR2004 - half of them
        shutil.rmtree(os.path.join(place, ".holdfast"))
    for path in files_of(place):
        with open(path, "r+b") as file:
            data = file.read()
            at = data.find(mark)
            if at >= 0:
                at += chance.randrange(len(mark))
                file.seek(at)
                file.write(bytes([data[at] ^ 1 << chance.randrange(8)]))


def _not_rescued(task: Task, truth: dict[str, object], victim: str) -> Iterator[str]:
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
