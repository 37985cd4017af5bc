"""What a folder of text costs beside a SQLite file: time, disk, and making an index."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from functools import partial
from itertools import count, cycle

import holdfast
from benchmarks.contest.units import duration, volume
from benchmarks.contest.workload import Message, Writer, growing, json_size
from benchmarks.measure import Bench, alternate, disk_size, timed
from benchmarks.report import Row, times

TASKS = 16


def directory(bench: Bench) -> None:
    """A folder against a file, both with what is saved safe from a power cut."""
    _saves(bench)
    _reads(bench)
    _tasks(bench)
    _size(bench)


def _stores(folder: str) -> tuple[holdfast.Store, holdfast.Store]:
    return (
        holdfast.open(f"dir:{os.path.join(folder, 'folder')}"),
        holdfast.open(os.path.join(folder, "a.db")),
    )


def _saves(bench: Bench) -> None:
    writer = Writer()
    with bench.place() as folder:
        stores = ours, reference = _stores(folder)
        turns = cycle([writer.turn() for _ in range(200)])
        for store in stores:
            store.thread("chat").save({"messages": []})
        rounds = bench.amount(100, 30)
        pair = alternate(
            lambda: ours.thread("chat").append(messages=next(turns)),
            lambda: reference.thread("chat").append(messages=next(turns)),
            rounds=rounds,
            block=5,
        )
        _row(bench, "append in a folder against a file, full", *pair.medians)
        names = count()
        pair = alternate(
            lambda: ours.thread(f"new {next(names)}").save({"n": 1}),
            lambda: reference.thread(f"new {next(names)}").save({"n": 1}),
            rounds=rounds,
        )
        _row(bench, "first save of a thread, folder against file, full", *pair.medians)
        for store in stores:
            store.close()


def _reads(bench: Bench) -> None:
    writer = Writer()
    with bench.place() as folder:
        stores = ours, reference = _stores(folder)
        for store in stores:
            for name in range(100):
                store.thread(f"chat {name}").append(messages=writer.turn())
        rounds = bench.amount(200, 50)
        pair = alternate(
            ours.thread("chat 50").load, reference.thread("chat 50").load, rounds=rounds
        )
        _row(bench, "load of a known state, folder against file", *pair.medians)
        pair = alternate(ours.threads, reference.threads, rounds=rounds)
        _row(bench, "list of 100 threads, folder against file", *pair.medians)
        for store in stores:
            store.close()


def _tasks(bench: Bench) -> None:
    saves = bench.amount(40, 10)
    with bench.place() as folder:
        ours = asyncio.run(_save_at_once(f"dir:{os.path.join(folder, 'b')}", saves))
        reference = asyncio.run(_save_at_once(os.path.join(folder, "b.db"), saves))
    work = f"a save of {TASKS} tasks with a thread each, folder against file, full"
    _row(bench, work, ours, reference)


async def _save_at_once(url: str, saves: int) -> float:
    """Seconds for one save, when many are made at once."""
    turn = Writer().turn()

    async def save(store: holdfast.AsyncStore, name: str) -> None:
        for _ in range(saves):
            await store.thread(name).append(messages=turn)

    async with holdfast.open_async(url) as store:
        tasks = [save(store, f"task {n}") for n in range(TASKS)]
        start = time.perf_counter()
        await asyncio.gather(*tasks)
        return (time.perf_counter() - start) / saves / TASKS


def _size(bench: Bench) -> None:
    """The bytes of a conversation, and how long an index for it takes."""
    with bench.place() as folder:
        path = os.path.join(folder, "folder")
        messages: list[Message] = []
        with holdfast.open(f"dir:{path}") as store:
            for turn in growing(bench.amount(500, 100)):
                store.thread("chat").append(messages=turn.added)
                messages = turn.messages
        raw = json_size(messages)
        text = disk_size(os.path.join(path, "chat-1.jsonl"))
        whole = sum(
            os.path.getsize(os.path.join(place, name))
            for place, _, names in os.walk(path)
            for name in names
        )
        shutil.rmtree(os.path.join(path, ".holdfast"))
        seconds = timed(partial(_reopen, path))
    measured = f"{volume(text)} of text, {volume(whole)} with the index"
    work = "disk, a chat saved every turn in a folder, against its text"
    bench.rows.append(Row(work, f"{measured}; raw {volume(raw)}", text / raw))
    bench.notes.append(
        f"an index of {volume(text)} of lines is made in {duration(seconds)}"
    )


def _reopen(path: str) -> None:
    holdfast.open(f"dir:{path}").close()


def _row(bench: Bench, work: str, ours: float, reference: float) -> None:
    bench.rows.append(Row(work, times(ours, reference, "file"), ours / reference))
