"""The sync and the async API of a store: equal, usable from loops, threads, forks."""

import asyncio
import inspect
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from io import BytesIO
from pathlib import Path
from random import Random

import msgspec
import pytest

import holdfast
from holdfast import (
    AsyncExploration,
    Exploration,
    Store,
    Thread,
)
from holdfast.backends import NEW_THREAD, run
from holdfast.operations.threads import journal
from holdfast.recorder import RecorderOptions
from holdfast.testing import FakeClock, blocking, ids, raises
from inner.api import (
    ExploreOptions,
    HistoryOptions,
    ImportOptions,
    LinesOptions,
    ListOptions,
    MergeOptions,
    SearchOptions,
    StartOptions,
    ThreadsOptions,
)
from inner.engine import SaveOptions
from support import handles
from support.handles import Conversations
from support.samples import LONG

FIXTURES = Path(__file__).parents[1] / "fixtures"
SAVE_OPTIONS = SaveOptions.__optional_keys__


def public(kind):
    return {name: vars(kind)[name] for name in vars(kind) if not name.startswith("_")}


def parameters(method):
    signature = inspect.signature(method)
    return [
        # What one API takes of its own kind, the other does as well.
        (p.name, p.kind, p.default, str(p.annotation).replace("Async", ""))
        for p in signature.parameters.values()
    ]


CLASSES = [
    *zip(handles.BLOCKING, handles.AWAITED, strict=True),
    (Exploration, AsyncExploration),
]
PAIRS = [
    pytest.param(kind, twin, name, id=f"{kind.__name__}.{name}")
    for kind, twin in CLASSES
    for name in sorted(public(kind).keys() | public(twin).keys())
]
# These only give a handle.
AT_ONCE = {"thread", "stream", "autosave", "scope", "transaction", "using"}
AT_ONCE |= {"agents", "conversations", "documents"}


class TestSignatures:
    @pytest.mark.parametrize(("blocking", "awaited", "name"), PAIRS)
    def test_both_apis_have_the_same_methods(self, blocking, awaited, name):
        one, other = public(blocking)[name], public(awaited)[name]

        if isinstance(one, property | cached_property):
            assert isinstance(other, property | cached_property)
        else:
            assert parameters(one) == parameters(other)

    @pytest.mark.parametrize(("blocking", "awaited", "name"), PAIRS)
    def test_everything_that_may_wait_is_awaited(self, blocking, awaited, name):
        method = public(awaited)[name]
        function = method.fget if isinstance(method, property) else method

        assert inspect.iscoroutinefunction(function) == (name not in AT_ONCE)
        assert not inspect.iscoroutinefunction(public(blocking)[name])

    def test_both_openings_take_the_same_options(self):
        assert parameters(holdfast.open) == parameters(holdfast.open_async)

    def test_everything_public_has_a_docstring(self):
        for kind, _ in CLASSES:
            for name, member in public(kind).items():
                assert member.__doc__, f"{kind.__name__}.{name}"


# The methods whose options are declared once, and a call of each with no option.
OPTIONS = [
    pytest.param(method, options, call, id=method.__qualname__)
    for method, options, call in [
        (Thread.save, SaveOptions, lambda s, **o: s.thread("t").save({}, **o)),
        (Thread.extend, SaveOptions, lambda s, **o: s.thread("t").extend({}, **o)),
        (Thread.amend, SaveOptions, lambda s, **o: s.thread("t").amend(**o)),
        (
            Thread.explore,
            ExploreOptions,
            lambda s, **o: (
                s.thread("t").save({}) and s.thread("t").explore(print, n=1, **o)
            ),
        ),
        (
            Thread.merge,
            MergeOptions,
            lambda s, **o: s.thread("t").merge(s.thread("t").save({}), **o),
        ),
        (Thread.history, HistoryOptions, lambda s, **o: s.thread("t").history(**o)),
        (Store.thread, StartOptions, lambda s, **o: s.thread("t", **o)),
        (Store.threads, ThreadsOptions, lambda s, **o: s.threads(**o)),
        (Store.search, SearchOptions, lambda s, **o: s.search("x", **o)),
        (
            Store.export_lines,
            LinesOptions,
            lambda s, **o: s.export_lines(BytesIO(), **o),
        ),
        (
            Store.import_from,
            ImportOptions,
            lambda s, **o: s.import_from(FIXTURES / "smooth", **o),
        ),
        (Conversations.list, ListOptions, lambda s, **o: s.conversations.list(**o)),
        (
            Conversations.search,
            SearchOptions,
            lambda s, **o: s.conversations.search("x", **o),
        ),
        (
            Conversations.recorder,
            RecorderOptions,
            lambda s, **o: s.conversations.recorder("c", **o),
        ),
    ]
]
# Their docstrings name the method that explains the options.
EXPLAINED = {
    Thread.extend: Thread.save,
    Thread.amend: Thread.save,
    Conversations.search: Store.search,
}


class TestOptions:
    @pytest.mark.parametrize("opened", [holdfast.open, holdfast.open_async])
    @pytest.mark.parametrize(("method", "options", "call"), OPTIONS)
    def test_an_unknown_option_is_refused(self, opened, method, options, call):
        store = opened(":memory:")
        with store if opened is holdfast.open else blocking(store) as store:
            call(store)
            with raises(TypeError) as raised:
                call(store, lable="x")

            assert "'lable'" in str(raised.error)
            assert all(name in str(raised.error) for name in options.__optional_keys__)

    @pytest.mark.parametrize(("method", "options", "call"), OPTIONS)
    def test_the_docstring_names_every_option(self, method, options, call):
        text = EXPLAINED.get(method, method).__doc__

        missing = [o for o in options.__optional_keys__ if f"``{o}" not in text]
        assert missing == []

    @pytest.mark.parametrize("opened", [holdfast.open, holdfast.open_async])
    # A workspace as ``files`` is saved by append; elements are those of a list.
    @pytest.mark.parametrize("name", sorted({*SAVE_OPTIONS, "if_changed"} - {"files"}))
    def test_append_refuses_the_options_of_a_save(self, opened, name):
        store = opened(":memory:")
        with store if opened is holdfast.open else blocking(store) as store:
            chat = store.thread("chat")
            with raises(holdfast.Unstorable) as raised:
                chat.append(messages=["hi"], **{name: ["x"]})

            assert raised.error.path == name
            assert f"extend({{...}}, {name}=" in str(raised.error)
            assert chat.head is None
            chat.extend({name: ["x"]})
            assert chat.load() == {name: ["x"]}


async def doubled(context, thread, *, times=2):
    assert await context.find_thread(thread) is None
    return thread * times


class TestRunner:
    def test_a_store_runs_an_operation_of_a_caller(self, path):
        with holdfast.open(path) as store:
            assert store.runner.run(doubled, "ab") == "abab"
            assert store.runner.save(doubled, "ab", times=3) == "ababab"

    def test_an_async_store_awaits_an_operation_of_a_caller(self, path):
        async def main():
            async with holdfast.open_async(path) as store:
                assert store.runner.for_async() is store.runner
                assert store.runner.for_sync().run(doubled, "ab") == "abab"
                assert await store.runner.run(doubled, "ab") == "abab"
                return await store.runner.save(doubled, "ab", times=3)

        assert asyncio.run(main()) == "ababab"

    def test_a_sync_store_can_be_awaited(self, path):
        async def main(runner):
            assert await runner.run(doubled, "ab") == "abab"
            return await runner.save(doubled, "ab", times=3)

        with holdfast.open(path) as store:
            assert store.runner.for_sync() is store.runner
            assert asyncio.run(main(store.runner.for_async())) == "ababab"

    def test_a_save_is_ordered_by_the_thread_of_a_value(self):
        class Note(msgspec.Struct, frozen=True):
            thread: str
            text: str

        async def note(context, note):
            where = journal.JournalPlace(note.thread, NEW_THREAD, None, replace=False)
            values = where.entries(context, {note.text: True})
            return await journal.record(context, where, values)

        async def main():
            async with holdfast.open_async(":memory:") as store:
                notes = [Note("chat", f"{n}") for n in range(20)]
                await asyncio.gather(*(store.runner.save(note, n) for n in notes))
                return await store.thread("chat").journal()

        assert list(asyncio.run(main())) == [f"{n}" for n in range(20)]

    def test_an_operation_that_suspends_is_refused(self, path):
        async def waits(context):
            await asyncio.sleep(0)

        with holdfast.open(path) as store, raises(RuntimeError):
            store.runner.run(waits)


class TestAwaited:
    def test_the_async_api_works(self, path):
        async def main():
            async with holdfast.open_async(path, new_id=ids()) as store:
                chat = store.thread("chat")
                assert await chat.head is None
                first = await chat.save({"messages": ["hi"]})
                await chat.append(messages=["hello"])
                assert (await chat.head).parent == first.id
                assert await chat.step == 2
                assert (await chat.about).id == "chat"
                fork = await chat.fork("fork", at=first)
                assert await fork.load() == {"messages": ["hi"]}
                assert len(await store.threads()) == 2
                return await chat.load()

        assert asyncio.run(main()) == {"messages": ["hi", "hello"]}

    def test_a_store_can_be_opened_without_a_block(self):
        async def main():
            store = await holdfast.open_async(":memory:")
            saved = await store.thread("chat").save({"n": 1})
            await store.close()
            return saved.step

        assert asyncio.run(main()) == 1

    def test_what_cannot_be_opened_raises_when_awaited(self, tmp_path):
        (tmp_path / "notes.txt").write_text("not a store, but dear to somebody" * 100)

        async def main():
            with raises(holdfast.FormatMismatch):
                await holdfast.open_async(tmp_path / "notes.txt")
            with raises(holdfast.Unstorable):
                await holdfast.open_async(":memory:", durability="maybe")

        asyncio.run(main())

    def test_a_refused_save_raises_where_it_is_awaited(self):
        async def main():
            async with holdfast.open_async(":memory:") as store:
                chat = store.thread("chat")
                first = await chat.save({"n": 1})
                await chat.save({"n": 2})
                with raises(holdfast.Conflict, "head_moved"):
                    await chat.save({"n": 3}, expect=first)
                with raises(holdfast.Unstorable):
                    await chat.save({"f": print})
                return await chat.step

        assert asyncio.run(main()) == 2

    def test_saving_while_walking_through_the_history_is_fine(self):
        async def main():
            async with holdfast.open_async(":memory:") as store:
                chat = store.thread("chat")
                for n in range(5):
                    await chat.save({"n": n})
                for checkpoint in await chat.history():
                    await chat.save({"again": await chat.load(checkpoint)})
                return await chat.load()

        assert asyncio.run(main()) == {"again": {"n": 0}}

    def test_many_tasks_save_at_once(self, path):
        async def main():
            async with holdfast.open_async(path, durability="normal") as store:
                chat = store.thread("chat")
                saves = [chat.append(m=[f"{n} {LONG}"]) for n in range(100)]
                saved = await asyncio.gather(*saves)
                return [c.step for c in saved], await chat.load()

        steps, state = asyncio.run(main())

        assert sorted(steps) == list(range(1, 101))
        assert sorted(state["m"]) == sorted(f"{n} {LONG}" for n in range(100))

    def test_tasks_that_save_to_one_thread_do_not_repeat_their_work(self):
        calls = []

        def clock():
            calls.append(1)
            return 0

        async def main():
            async with holdfast.open_async(":memory:", clock=clock) as store:
                chat = store.thread("chat")
                await asyncio.gather(*(chat.append(m=[n]) for n in range(100)))
                return await chat.step

        assert asyncio.run(main()) == 100
        # Every attempt looks at the clock; without a queue it would be 5,050 times.
        assert len(calls) <= 1000

    def test_many_watchers_do_not_keep_others_from_saving(self):
        async def main():
            async with holdfast.open_async(":memory:") as store:
                watchers = [
                    asyncio.create_task(store.changes(timeout=60)) for _ in range(100)
                ]
                await asyncio.sleep(0)
                await store.thread("chat").save({})
                return [len(page) for page in await asyncio.gather(*watchers)]

        assert asyncio.run(main()) == [1] * 100

    def test_a_program_ends_though_it_did_not_close_its_store(self, path):
        program = (
            "import asyncio, sys, holdfast\n"
            "async def main():\n"
            "    store = await holdfast.open_async(sys.argv[1])\n"
            "    await store.thread('chat').save({'n': 1})\n"
            "    return store\n"
            "store = asyncio.run(main())\n"
        )

        subprocess.run([sys.executable, "-c", program, path], check=True, timeout=120)

        with holdfast.open(path) as store:
            assert store.thread("chat").load() == {"n": 1}

    def test_a_store_can_be_used_from_one_loop_after_another(self, path):
        store = asyncio.run(holdfast.open_async(path)._open())

        async def save():
            return (await store.thread("chat").save({})).step

        assert [asyncio.run(save()) for _ in range(3)] == [1, 2, 3]
        asyncio.run(store.close())


def check_appended(store):
    """Everything in the chat is whole; returns the ids but that of the start."""
    chat = store.thread("chat")
    *made, start = chat.history(None)
    assert start.id == "start"
    for checkpoint in made:
        before = chat.load(checkpoint.parent)["m"]
        assert chat.load(checkpoint) == {"m": [*before, f"{checkpoint.id} {LONG}"]}
        assert chat.journal(checkpoint=checkpoint) == {"n": int(checkpoint.id)}
    assert store.stats().checkpoints == len(made) + 1
    assert store.stats().journal_entries == len(made)
    return {checkpoint.id for checkpoint in made}


class TestCancelled:
    @pytest.mark.parametrize("at_once", [1, 40])
    def test_a_cancelled_save_is_whole_or_not_there(self, path, at_once):
        chance = Random(20240229)
        acknowledged, cancelled = set(), set()

        async def save_and_cancel(chat, n):
            task = asyncio.create_task(
                chat.extend({"m": [f"{n} {LONG}"]}, id=f"{n}", journal={"n": n})
            )
            for _ in range(chance.randrange(12)):
                await asyncio.sleep(0)
            task.cancel()
            [result] = await asyncio.gather(task, return_exceptions=True)
            is_cancelled = isinstance(result, asyncio.CancelledError)
            assert is_cancelled or result.id == f"{n}"
            (cancelled if is_cancelled else acknowledged).add(f"{n}")

        async def main():
            async with holdfast.open_async(path, durability="normal") as store:
                chat = store.thread("chat")
                await chat.save({"m": []}, id="start")
                for first in range(0, 200, at_once):
                    group = range(first, first + at_once)
                    await asyncio.gather(*(save_and_cancel(chat, n) for n in group))

        asyncio.run(main())

        assert cancelled
        with holdfast.open(path) as store:
            made = check_appended(store)
            assert acknowledged <= made <= acknowledged | cancelled

    def test_a_cancelled_save_can_be_repeated_with_its_id(self, path):
        async def main():
            async with holdfast.open_async(path, durability="normal") as store:
                chat = store.thread("chat")
                for n in range(50):
                    task = asyncio.create_task(chat.extend({"m": [n]}, id=f"{n}"))
                    for _ in range(n % 7):
                        await asyncio.sleep(0)
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                    await chat.extend({"m": [n]}, id=f"{n}")
                return await chat.load(), await chat.step

        assert asyncio.run(main()) == ({"m": [*range(50)]}, 50)

    def test_a_cancelled_watcher_leaves_the_store_usable(self):
        async def main():
            async with holdfast.open_async(":memory:") as store:
                watcher = asyncio.create_task(store.changes(timeout=600))
                await asyncio.sleep(0)
                watcher.cancel()
                await asyncio.gather(watcher, return_exceptions=True)
                return (await store.thread("chat").save({})).step

        assert asyncio.run(main()) == 1

    def test_more_saves_than_threads_can_be_cancelled_at_once(self, path):
        async def main():
            async with holdfast.open_async(path, durability="normal") as store:
                chat = store.thread("chat")
                tasks = [asyncio.create_task(chat.append(m=[n])) for n in range(200)]
                await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                results = await asyncio.gather(*tasks, return_exceptions=True)
                return [isinstance(r, asyncio.CancelledError) for r in results]

        assert any(asyncio.run(main()))
        with holdfast.open(path) as store:
            store.thread("chat").append(m=["end"])
            assert store.thread("chat").step == len(store.thread("chat").load()["m"])

    def test_closing_finishes_what_was_begun(self, path):
        async def main():
            store = await holdfast.open_async(path, durability="normal")
            tasks = [
                asyncio.create_task(store.thread("chat").append(m=[n]))
                for n in range(100)
            ]
            await asyncio.sleep(0)
            await store.close()
            return await asyncio.gather(*tasks, return_exceptions=True)

        results = asyncio.run(main())

        saved = {r.id for r in results if isinstance(r, holdfast.Checkpoint)}
        refused = [r for r in results if isinstance(r, holdfast.Closed)]
        assert len(saved) + len(refused) == 100
        with holdfast.open(path) as store:
            assert saved == {c.id for c in store.thread("chat").history(None)}


class TestBlocking:
    def test_the_sync_api_works_inside_a_running_loop(self, path):
        async def main():
            with holdfast.open(path) as store:
                store.thread("chat").save({"n": 1})
                await asyncio.sleep(0)
                return store.thread("chat").load()

        assert asyncio.run(main()) == {"n": 1}

    def test_an_operation_that_suspends_is_refused(self):
        async def waits():
            await asyncio.sleep(0)

        operation = waits()
        with raises(RuntimeError):
            run(operation)

        assert inspect.getcoroutinestate(operation) == inspect.CORO_CLOSED

    def test_what_an_operation_raises_is_raised(self):
        async def fails():
            raise ValueError("as it is")

        with raises(ValueError):
            run(fails())

    def test_a_store_is_used_by_several_threads(self, path):
        with holdfast.open(path, durability="normal") as store:
            start = threading.Barrier(8)

            def save(name):
                start.wait()
                for n in range(25):
                    store.thread("shared").append(m=[f"{name} {n} {LONG}"])
                    store.thread(f"own {name}").save({"n": n, "text": f"{n} {LONG}"})
                    store.thread("shared").load()

            with ThreadPoolExecutor(8) as pool:
                list(pool.map(save, range(8)))

            shared = store.thread("shared")
            steps = [c.step for c in shared.history(None)]
            assert steps == list(range(200, 0, -1))
            for name in range(8):
                mine = [e for e in shared.load()["m"] if e.startswith(f"{name} ")]
                assert mine == [f"{name} {n} {LONG}" for n in range(25)]
                assert store.thread(f"own {name}").load()["n"] == 24

    def test_an_in_memory_store_is_used_by_several_threads(self):
        with holdfast.open(":memory:") as store:
            chat = store.thread("chat")
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda n: chat.append(m=[n]), range(200)))

            assert sorted(chat.load()["m"]) == list(range(200))
            assert chat.step == 200

    @pytest.mark.parametrize("attempt", range(3))
    def test_several_threads_begin_to_compress_at_once(self, attempt):
        with holdfast.open(":memory:", compress=True) as store:
            start = threading.Barrier(8)

            def save(name):
                start.wait()
                for n in range(12):
                    store.thread(f"{name}").append(m=[f"{name} {n} {LONG}"])

            with ThreadPoolExecutor(8) as pool:
                list(pool.map(save, range(8)))

            for name in range(8):
                loaded = store.thread(f"{name}").load()
                assert loaded == {"m": [f"{name} {n} {LONG}" for n in range(12)]}

    def test_both_apis_may_be_open_at_once(self, path):
        with holdfast.open(path) as store, blocking(holdfast.open_async(path)) as other:
            for n in range(10):
                store.thread("chat").append(m=[f"{n} {LONG}"])
                other.thread("chat").append(m=[f"{n} {LONG}"])

            assert store.thread("chat").load() == other.thread("chat").load()
            assert store.thread("chat").step == 20

    def test_another_thread_may_close_the_store(self, path):
        store = holdfast.open(path)
        store.thread("chat").save({})
        closer = threading.Thread(target=store.close)
        closer.start()
        closer.join()

        with raises(holdfast.Closed):
            store.thread("chat").load()


FORKING = """
import os, sys, threading
import holdfast

store = holdfast.open(sys.argv[1], durability="normal")
chat = store.thread("chat")
chat.append(m=["start" * 100])
stop = threading.Event()

def keep_saving():
    n = 0
    while not stop.is_set():
        store.thread("busy").append(m=[n])
        n += 1

busy = threading.Thread(target=keep_saving)
busy.start()
for n in range(10):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            chat.append(m=[f"child {n} " * 50])
            store.thread(f"child {n}").save({"n": n})
            assert store.thread(f"child {n}").load() == {"n": n}
            store.close()
            status = 0
        finally:
            os._exit(status)
    chat.append(m=[f"parent {n} " * 50])
    _, status = os.waitpid(child, 0)
    assert status == 0, status
stop.set()
busy.join()
store.close()
"""


FORKING_AWAITED = """
import asyncio, os, sys
import holdfast

async def save(store, name):
    await store.thread(name).append(m=[name])
    return (await store.thread(name).load())["m"]

store = asyncio.run(holdfast.open_async(sys.argv[1])._open())
assert asyncio.run(save(store, "parent")) == ["parent"]
child = os.fork()
if child == 0:
    status = 1
    try:
        assert asyncio.run(save(store, "child")) == ["child"]
        asyncio.run(store.close())
        status = 0
    finally:
        os._exit(status)
assert os.waitpid(child, 0)[1] == 0
assert asyncio.run(save(store, "parent")) == ["parent", "parent"]
asyncio.run(store.close())
"""


class TestForked:
    def test_parent_and_child_await_saves_after_a_fork(self, path):
        program = [sys.executable, "-W", "ignore", "-c", FORKING_AWAITED, path]
        subprocess.run(program, check=True, timeout=120)

        with holdfast.open(path) as store:
            assert {t.id: t.head.step for t in store.threads()} == {
                "parent": 2,
                "child": 1,
            }

    def test_parent_and_children_save_after_a_fork(self, path):
        # In a process of its own: newer Pythons warn of forking beside threads.
        subprocess.run([sys.executable, "-c", FORKING, path], check=True, timeout=120)

        with holdfast.open(path) as store:
            elements = store.thread("chat").load()["m"][1:]
            assert sorted(element.split()[0] for element in elements) == sorted(
                ["child", "parent"] * 10
            )
            assert store.thread("chat").step == 21
            assert [store.thread(f"child {n}").load()["n"] for n in range(10)] == [
                *range(10)
            ]
            busy = store.thread("busy").load()["m"]
            assert busy == list(range(len(busy)))


class TestSources:
    def test_a_fake_clock_is_set_and_advanced(self):
        clock = FakeClock(5)
        clock.now += 2

        assert clock() == clock() == 7

    def test_ids_are_the_same_in_every_run(self):
        first, second = ids("x"), ids("x")

        assert [first(), first()] == [second(), second()]
        assert first() != second() + "x"

    def test_raises_fails_when_nothing_is_raised(self):
        with pytest.raises(AssertionError, match="KeyError"), raises(KeyError):
            pass
        with pytest.raises(ValueError, match="other"), raises(KeyError):
            raise ValueError("other")
        with pytest.raises(AssertionError), raises(holdfast.NotFound, "foreign"):
            raise holdfast.NotFound("plain")
