"""Searching messages: what the index is worth, what it costs, and how large it is."""

from __future__ import annotations

import asyncio
import os
import random
import string
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec.structs import replace

import holdfast
from benchmarks.contest.units import duration, volume
from benchmarks.contest.workload import Writer
from benchmarks.inner.engine import SearchQuery, query
from benchmarks.measure import Bench, Pair, alternate, disk_size, timed
from benchmarks.report import Row, times
from benchmarks.volume_stores import COMMON, RARE, fill_threads
from holdfast.backends import run
from holdfast.operations import Context

MESSAGES, IN_ONE = 200_000, 100
# Threads, messages a second in the first search, how much slower later ones may get.
FEW, MANY = 300, 100_000
# A word in 3 % of the texts of `fill_threads`.
SOME = "brusox"
GOAL, FLAT = 25_000, 1.2
SIZED = 20_000_000


def search(bench: Bench) -> None:
    """A rare word with and without the index, and the index against the text."""
    with bench.place() as folder:
        _grow(bench, folder)
    with bench.place() as folder:
        _find(bench, os.path.join(folder, "a.db"))
    for name, text in TEXTS.items():
        with bench.place() as folder:
            _measure(bench, os.path.join(folder, "a.db"), name, text)


def _grow(bench: Bench, folder: str) -> None:
    """The first search of many threads, and later ones against those of few."""
    few, many = FEW, bench.amount(MANY, 3_000)
    paths = [os.path.join(folder, f"{count}.db") for count in (few, many)]
    for path, count in zip(paths, (few, many), strict=True):
        asyncio.run(fill_threads(path, count))
    with (
        holdfast.open(paths[0], durability="normal") as small,
        holdfast.open(paths[1], durability="normal") as large,
    ):
        small.search(RARE)
        rate = many / timed(lambda: large.search(RARE))
        work = f"first search of {many:,} threads of a message, messages a second"
        measured = f"{rate:,.0f} against {GOAL:,}"
        bench.rows.append(Row(work, measured, rate / GOAL, 1, "at least"))
        for word in (RARE, COMMON):
            pair = alternate(
                partial(large.search, word),
                partial(small.search, word),
                rounds=bench.amount(30, 5),
            )
            ours, reference = pair.medians
            work = f"{word!r} in {many:,} threads against {few}, first page"
            measured = times(ours, reference, "few")
            bench.rows.append(Row(work, measured, ours / reference, FLAT))
        _compare_frequencies(bench, large)


def _compare_frequencies(bench: Bench, store: holdfast.Store) -> None:
    """A word that is neither rare nor common against one that nearly all have."""
    pair = alternate(
        partial(store.search, SOME),
        partial(store.search, COMMON),
        rounds=bench.amount(30, 5),
    )
    ours, reference = pair.medians
    work = f"{SOME!r}, in 3 % of the threads, against {COMMON!r}, first page"
    measured = times(ours, reference, "common")
    bench.rows.append(Row(work, measured, ours / reference))


def _find(bench: Bench, path: str) -> None:
    messages = bench.amount(MESSAGES, 10_000)
    writer = Writer()
    size = _fill(path, lambda: writer.text(750), messages=messages, rare=RARE)
    before = disk_size(path)
    with holdfast.open(path, durability="normal") as store:
        catching_up = timed(lambda: store.search(RARE))
        for word in (RARE, COMMON):
            _find_word(bench, store, word, messages)
        _find_fresh(bench, store)
        compacting = timed(store.compact)
    work = f"index of {messages:,} messages, compacted, against their text"
    took = f"indexed in {duration(catching_up)} ({volume(size / catching_up)}/s)"
    grown = disk_size(path) - before
    measured = f"{volume(grown)} for {volume(size)}; {took}"
    bench.rows.append(Row(work, measured, grown / size, 1.2))
    bench.notes.append(f"compacting {volume(before)} took {duration(compacting)}")


def _find_word(bench: Bench, store: holdfast.Store, word: str, messages: int) -> None:
    scanning = replace(
        store.runner.context, backend=_Scanning(store.runner.context.backend)
    )
    pair = alternate(
        partial(_first_page, store.runner.context, word),
        partial(_first_page, scanning, word),
        rounds=bench.amount(5, 3),
    )
    ours, reference = pair.medians
    limit = 50 if word == RARE else None
    work = f"{word!r} among {messages:,} messages, index against reading them all"
    measured = times(ours, reference, "without")
    bench.rows.append(Row(work, measured, reference / ours, limit, "at least"))


def _find_fresh(bench: Bench, store: holdfast.Store) -> None:
    """A search right after a message was added, against one after another search."""
    pair = Pair([], [])
    for n in range(bench.amount(20, 5)):
        store.conversations.add(f"c{n}", {"role": "user", "content": "And now this?"})
        pair.ours.append(timed(lambda: store.search(RARE)))
        pair.reference.append(timed(lambda: store.search(RARE)))
    ours, reference = pair.medians
    work = "search after a message was added against once more"
    bench.rows.append(Row(work, times(ours, reference, "again"), ours / reference))


def _first_page(context: Context, word: str) -> None:
    found = run(query.search(context, SearchQuery(text=word)))
    assert found


class _Scanning:
    """A backend that says that it has no index."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.abilities = backend.abilities - {"search"}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


# --- how large it is ------------------------------------------------------------------


def _measure(bench: Bench, path: str, name: str, text: Callable[[], str]) -> None:
    """The size of an index of one kind of text, once it is compacted."""
    size = _fill(path, text, size=bench.amount(SIZED, 2_000_000))
    before = disk_size(path)
    with holdfast.open(path, durability="normal") as store:
        catching_up = timed(lambda: store.search(RARE))
        store.compact()
    grown = disk_size(path) - before
    work = f"index of {name}, compacted, against the text"
    measured = f"{volume(grown)} for {volume(size)}; {volume(size / catching_up)}/s"
    bench.rows.append(Row(work, measured, grown / size, 1.2))


def _fill(
    path: str,
    text: Callable[[], str],
    *,
    messages: int = MESSAGES,
    size: int | None = None,
    rare: str = "",
) -> int:
    """Conversations of so many messages, or so much text; the bytes of all texts."""
    total = 0
    with holdfast.open(path, durability="normal") as store:
        for number in range(messages // IN_ONE):
            texts = [text() for _ in range(IN_ONE)]
            if rare and number == messages // IN_ONE // 2:
                texts[IN_ONE // 2] += f" {rare}"
            turn = ("user", "assistant") * (IN_ONE // 2)
            store.conversations.create(
                f"c{number}",
                messages=[
                    {"role": role, "content": text}
                    for role, text in zip(turn, texts, strict=True)
                ],
            )
            total += sum(len(text.encode()) for text in texts)
            if size is not None and total >= size:
                break
        store.compact()
    return total


def _random_text(alphabet: str) -> Callable[[], str]:
    chance = random.Random(1)
    return lambda: "".join(chance.choices(alphabet, k=chance.randint(200, 1500)))


def _log_lines() -> Callable[[], str]:
    """Output of tools: paths, numbers, times and hashes between few words."""
    chance = random.Random(2)
    writer = Writer(3)

    def lines() -> Iterator[str]:
        for _ in range(chance.randint(3, 25)):
            at = f"2024-05-{chance.randint(1, 28):02}T{chance.randint(0, 23):02}:"
            path = "/".join(writer.text(12).split())
            yield (
                f"{at}{chance.randint(0, 59):02} INFO [{chance.getrandbits(32):08x}]"
                f" GET /{path} {chance.choice((200, 304, 404, 500))}"
                f" {chance.randint(1, 9999)}ms"
            )

    return lambda: "\n".join(lines())


TEXTS: dict[str, Callable[[], str]] = {
    "log lines": _log_lines(),
    "hexadecimal digits": _random_text(string.hexdigits[:16]),
    "base64": _random_text(string.ascii_letters + string.digits + "+/"),
}
