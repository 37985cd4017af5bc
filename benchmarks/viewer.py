"""The viewer: how long a picture takes, and its memory, against the size of a store."""

from __future__ import annotations

import os
from functools import partial

import holdfast
from benchmarks.contest.units import volume
from benchmarks.inner.viewer import READINGS, Showing, query_of
from benchmarks.measure import Bench, Work, alternate
from benchmarks.report import Row, times
from benchmarks.viewer_page import chromium, memory

FEW, MANY = 100, 100_000
STEPS = 100
# How much longer a picture of a large store may take.
FLAT = 2.0
# The rows of a page of the log, and the cards of one of threads.
LISTED, CARDS = 200, 50


def viewer(bench: Bench) -> None:
    """What a browser asks for, in stores of few and of many checkpoints."""
    many = bench.amount(MANY, 3_000)
    with bench.place() as folder:
        paths = [os.path.join(folder, f"{count}.db") for count in (FEW, many)]
        for path, count in zip(paths, (FEW, many), strict=True):
            _fill(path, count)
        with (
            holdfast.open(paths[0], read_only=True) as small,
            holdfast.open(paths[1], read_only=True) as large,
        ):
            _compare(bench, Browser(large), Browser(small), many)
        _compare_pages(bench, paths, many)


def _fill(path: str, count: int) -> None:
    """Half of the checkpoints in threads of a hundred steps, half in a long one.

    The threads used last, which the first page has, are the same in every store.
    """
    with holdfast.open(path, durability="normal") as store:
        threads = max(count // (2 * STEPS), 1)
        names = [f"thread-{n}" for n in range(threads)]
        recent = [f"recent-{n}" for n in range(CARDS)]
        lengths = [*((name, STEPS) for name in names), ("long", count // 2)]
        lengths += [(name, 1) for name in recent]
        for name, length in lengths:
            thread = store.thread(name)
            for step in range(length):
                role = "assistant" if step % 2 else "user"
                # A list that stays short: the picture is of a store, not of a state.
                said = [{"role": role, "content": f"Message {step} of {name}."}]
                thread.save({"messages": said, "step": step})


class Browser:
    """Asks for documents as the page does."""

    def __init__(self, store: holdfast.Store) -> None:
        self.store = store

    def ask(self, name: str, **params: object) -> dict[str, object]:
        """One document."""
        reading = READINGS[name]
        texts = {key: [str(value)] for key, value in params.items()}
        query = query_of(reading, texts)
        return self.store.runner.run(reading.view, query, Showing())

    def first_picture(self) -> None:
        """Everything until the page stands still with a thread of 100 steps open.

        But the numbers of the store: the page puts them in its head when they come.
        """
        thread = "thread-0"
        self.ask("threads", limit=CARDS)
        head = self.ask("thread", thread=thread)["head"]
        self.log(thread)
        self.ask("minimap", thread=thread, buckets=2000)
        self.ask("line", thread=thread, first=0, limit=500)
        self.step(head)

    def log(self, thread: str) -> None:
        """A page of the log."""
        self.ask("log", thread=thread, scope="family", limit=LISTED)

    def step(self, checkpoint: object) -> None:
        """What one step of the scrubber shows."""
        self.ask("checkpoint", id=checkpoint)
        self.ask("messages", checkpoint=checkpoint)


def _compare(bench: Bench, large: Browser, small: Browser, many: int) -> None:
    _add(bench, "first picture", many, large.first_picture, small.first_picture)
    numbers = [partial(browser.ask, "store") for browser in (large, small)]
    _add(bench, "the numbers of the store", many, *numbers, more=None)
    ends = [browser.store.thread("long").get().id for browser in (large, small)]
    scrubs = [partial(b.step, end) for b, end in zip((large, small), ends, strict=True)]
    _add(bench, "a step of the scrubber", many, *scrubs)
    pages = [partial(browser.log, "long") for browser in (large, small)]
    # A page of 200 rows beside one of 50: the rows alone take four times as long.
    _add(bench, "a page of the log", many, *pages, more=LISTED / (FEW // 2))


def _compare_pages(bench: Bench, paths: list[str], many: int) -> None:
    with chromium() as browser:
        if browser is None:
            bench.notes.append("no Chromium: the memory of the page was not measured")
            return
        small, large = (memory(browser, path, "long") for path in paths)
    name = f"viewer, memory of the page: {many:,} checkpoints in the store against"
    measured = f"{volume(large)}; few {volume(small)}"
    bench.rows.append(Row(f"{name} {FEW}", measured, large / small, FLAT))


def _add(
    bench: Bench,
    work: str,
    many: int,
    ours: Work,
    reference: Work,
    *,
    more: float | None = 1,
) -> None:
    pair = alternate(ours, reference, rounds=bench.amount(20, 3))
    large, small = pair.medians
    name = f"viewer, {work}: {many:,} checkpoints in the store against {FEW}"
    measured = times(large, small, "few")
    limit = None if more is None else more * FLAT
    bench.rows.append(Row(name, measured, large / small, limit))
