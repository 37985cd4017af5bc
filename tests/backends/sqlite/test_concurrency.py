"""Many at once: processes, threads, tasks and forks lose nothing and wait in turn."""

import asyncio
import contextlib
import itertools
import os
import random
import subprocess
import sys
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import apsw
import psutil
import pytest
from msgspec.structs import replace

import holdfast
from holdfast import Busy, Conflict, Retention, Store
from support.effort import THOROUGH, seed_of
from support.folders import PROGRAMS
from support.many_processes import CrowdTests, by_writer, is_one_line, swarm
from support.programs import ENVIRONMENT, run_program
from support.scenario import FILE, build, copy_folder, dump, problems_of
from support.stores import backend_of
from support.two_calls import (
    BEFORE_SECOND,
    BEFORE_THIRD,
    CALLS,
    Interrupted,
    rivals_of,
    tried,
    try_all,
)

pytestmark = pytest.mark.processes


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / FILE)


@pytest.fixture
def start(tmp_path):
    folder = tmp_path / "start"
    folder.mkdir()
    build(str(folder / FILE))
    return str(folder)


# --- processes ------------------------------------------------------------------------


class TestProcesses(CrowdTests):
    count = 150 if THOROUGH else 60

    @pytest.fixture
    def place(self, path):
        return path


def test_a_new_file_can_be_opened_by_eight_processes_at_once(path):
    files = 25 if THOROUGH else 10

    errors = swarm("first_open", path, 8, files)

    assert errors == [[]] * 8
    for number in range(files):
        with holdfast.open(f"{path}.{number}") as store:
            assert len(store.threads()) == 8
            assert problems_of(store) == []


def test_whoever_sets_up_a_new_file_the_other_finds_it_set_up(tmp_path):
    """A rival opens and saves between any two statements of an opening, or may not."""
    hasty = {"busy_timeout": 0.05}
    for at in itertools.count(1):
        path = str(tmp_path / f"{at}.db")
        statements = 0

        def step_aside(cursor, statement, bindings, path=path, at=at):
            nonlocal statements
            statements += 1
            if statements == at and not cursor.connection.in_transaction:
                apsw.connection_hooks.remove(hook)
                with contextlib.suppress(Busy), holdfast.open(path, **hasty) as rival:
                    rival.thread("rival").save({"n": 1})
            return True

        def hook(db, step_aside=step_aside):
            db.exec_trace = step_aside

        apsw.connection_hooks.append(hook)
        try:
            with holdfast.open(path) as store:
                store.thread("own").save({"n": 1})
                assert problems_of(store) == []
        finally:
            if hook in apsw.connection_hooks:
                apsw.connection_hooks.remove(hook)
        if statements < at:
            break

    assert at > 5


def test_a_store_can_be_opened_and_closed_beside_others_who_do_the_same(path):
    times = 60 if THOROUGH else 24

    swarm("reopen", path, 6, times)

    with holdfast.open(path) as store:
        for rank in (1, 3, 5):
            log = store.thread(f"own {rank}").load()["log"]
            assert [entry["n"] for entry in log] == list(range(times))
        assert problems_of(store) == []


@pytest.mark.parametrize("read_only", [True, False])
def test_a_store_that_grows_while_it_is_opened_is_not_taken_for_damaged(
    read_only, path
):
    holdfast.open(path).close()

    def grow(_):
        apsw.connection_hooks.remove(grow)
        with contextlib.suppress(Busy), holdfast.open(path, busy_timeout=0.05) as rival:
            rival.thread("rival").save({"text": "x" * 100_000})

    apsw.connection_hooks.append(grow)
    with holdfast.open(path, read_only=read_only) as store:
        assert grow not in apsw.connection_hooks
        assert problems_of(store) == []


def test_a_backup_made_while_others_write_is_a_state_there_was(path):
    each = 100 if THOROUGH else 40

    copies, *_ = swarm("back_up", path, 5, each)

    lengths = []
    for copy in copies:
        with holdfast.open(copy) as store:
            assert problems_of(store) == []
            thread = store.thread("shared")
            log = thread.load()["log"] if thread.head else []
            assert all(ns == list(range(len(ns))) for ns in by_writer(log).values())
            assert len(thread.history(None)) == len(log)
            lengths.append(len(log))
    assert lengths == sorted(lengths)
    assert lengths[-1] == 4 * each


class _Holder:
    """A process that holds something until it is told to let go."""

    def __init__(self, *arguments, name="hold_lock"):
        program = [sys.executable, str(PROGRAMS / f"{name}.py"), *arguments]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            program, stdin=pipe, stdout=pipe, env=ENVIRONMENT
        )
        assert self.process.stdout.readline() == b'"held"\n'

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def test_readers_who_relieve_one_another_do_not_let_the_log_grow(path):
    with holdfast.open(path, durability="normal") as store:
        thread = store.thread("t")
        thread.save({"n": 0})
        sizes = []
        with _Holder(path, name="relieve_readers"):
            for n in range(90):
                thread.save({"n": n, "text": os.urandom(500_000).hex()})
                sizes.append(os.path.getsize(f"{path}-wal"))

        assert max(sizes) < 64 << 20


# A program of another that reads, and was stopped in the middle of it.
READER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("begin")
print(db.execute("select count(*) from checkpoint").fetchone(), flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def reading(path):
    pipe = subprocess.PIPE
    program = [sys.executable, "-c", READER, path]
    with subprocess.Popen(program, stdin=pipe, stdout=pipe) as reader:
        assert reader.stdout.readline()
        yield reader.pid
        reader.kill()


def grow(store, megabytes):
    for n in range(megabytes // 2):
        store.thread("t").save({"n": n, "text": os.urandom(1_000_000).hex()})


def warnings_of(work):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(w.message) for w in caught if w.category is RuntimeWarning]


@pytest.mark.parametrize("url", ["{}/a.db", "dir:{}/a"])
def test_a_warning_names_the_reader_who_lets_the_log_grow(url, tmp_path):
    with holdfast.open(url.format(tmp_path), durability="normal") as store:
        store.thread("t").save({"n": 0})
        [path] = map(str, tmp_path.rglob("*.db"))
        with reading(path) as reader:
            found = warnings_of(lambda: grow(store, 76))
        after = warnings_of(lambda: grow(store, 40))

    assert len(found) == 1
    assert f"{path}-wal has grown to 6" in found[0]
    assert f"process {reader} (" in found[0]
    assert after == []


def test_a_warning_that_is_an_error_saves_nothing(path):
    steps = []

    async def fill(thread):
        for _ in range(38):
            saved = await thread.save({"text": os.urandom(1_000_000).hex()})
            steps.append(saved.step)

    async def saving():
        async with holdfast.open_async(path, durability="normal") as store:
            thread = store.thread("t")
            await thread.save({"n": 0})
            with reading(path), pytest.raises(RuntimeWarning, match="has grown"):
                await fill(thread)
            return (await thread.save({"n": 1})).step

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert asyncio.run(saving()) == steps[-1] + 1


def test_a_reader_of_the_same_process_is_named_so(path):
    with holdfast.open(path, durability="normal") as store:
        store.thread("t").save({"n": 0})
        with contextlib.closing(apsw.Connection(path)) as reader:
            reader.execute("begin")
            reader.execute("select count(*) from checkpoint").fetchall()
            [found] = warnings_of(lambda: grow(store, 76))

    assert "because this process itself has been reading" in found


@pytest.mark.parametrize("kind", ["database", "queue"])
def test_a_lock_held_past_the_timeout_is_busy_and_nothing_has_changed(kind, path):
    with holdfast.open(path, busy_timeout=0.2) as store:
        thread = store.thread("t")
        thread.save({"n": 0})
        before = dump(store)

        with _Holder(kind, path):
            for change in (
                lambda: thread.save({"n": 1}),
                lambda: thread.append(log=[1]),
                lambda: thread.fork("other"),
                thread.delete,
                lambda: store.prune(Retention(last=1)),
            ):
                with pytest.raises(Busy) as raised:
                    change()
                assert raised.value.code == "busy"
            assert dump(store) == before

        assert thread.save({"n": 2}).step == 2


def test_a_store_whose_lock_file_cannot_be_made_saves_all_the_same(path):
    os.mkdir(f"{path}-lock")

    with holdfast.open(path) as store:
        store.thread("t").save({"n": 0})

    with holdfast.open(path) as store:
        assert store.thread("t").load() == {"n": 0}


# --- one process ----------------------------------------------------------------------


def test_one_thread_reads_and_writes_with_one_connection(path):
    with holdfast.open(path) as store:
        thread = store.thread("t")
        for n in range(3):
            thread.append(log=[n])

        assert thread.load() == {"log": [0, 1, 2]}
        assert len(thread.history()) == 3
        opened = [file.path for file in psutil.Process().open_files()]

    assert opened.count(os.path.realpath(path)) == 1


def test_a_read_does_not_wait_for_a_save_that_waits(path):
    with holdfast.open(path, busy_timeout=60) as store:
        thread = store.thread("t")
        thread.save({"n": 0})
        with ThreadPoolExecutor(1) as pool:
            with _Holder("database", path):
                waiting = pool.submit(thread.save, {"n": 1})
                while not backend_of(store).database.lock.locked():
                    pass

                assert thread.load() == {"n": 0}
                assert not waiting.done()
            assert waiting.result().step == 2

        assert thread.load() == {"n": 1}


def test_sixteen_threads_save_to_threads_of_their_own(path):
    def work(number):
        thread = store.thread(f"own {number}")
        for n in range(40):
            thread.append(log=[n])
        return thread.load()["log"]

    with holdfast.open(path) as store, ThreadPoolExecutor(16) as pool:
        logs = list(pool.map(work, range(16)))

        assert logs == [list(range(40))] * 16
        seqs = [change.seq for change in store.changes(limit=1000)]
        assert seqs == list(range(1, 641))
        assert problems_of(store) == []


def test_sixteen_threads_append_to_one_thread(path):
    def work(number):
        thread = store.thread("shared")
        return [
            thread.append(log=[{"process": number, "n": n}]).step for n in range(25)
        ]

    with holdfast.open(path) as store, ThreadPoolExecutor(16) as pool:
        steps = list(pool.map(work, range(16)))

        log = store.thread("shared").load()["log"]
        assert by_writer(log) == {number: list(range(25)) for number in range(16)}
        assert sorted(itertools.chain(*steps)) == list(range(1, 401))
        assert is_one_line(store.thread("shared"))
        assert problems_of(store) == []


def test_one_failing_save_does_not_fail_those_committed_with_it(path):
    """Savers who lose a compare-and-swap beside savers who cannot lose."""

    def work(number):
        if number % 2:
            own = store.thread(f"own {number}")
            return [own.append(log=[n]).step for n in range(30)]
        lost = 0
        for n in range(30):
            try:
                store.thread("contested").save({"n": n}, expect=None)
            except Conflict:
                lost += 1
        return lost

    with holdfast.open(path) as store, ThreadPoolExecutor(16) as pool:
        results = list(pool.map(work, range(16)))

        assert results[1::2] == [list(range(1, 31))] * 8
        assert sum(results[::2]) == 8 * 30 - 1
        assert store.thread("contested").step == 1
        assert problems_of(store) == []


def test_saving_inside_a_loop_over_history_does_not_block(path):
    with holdfast.open(path) as store:
        thread = store.thread("t")
        for n in range(10):
            thread.append(log=[n])

        for checkpoint in thread.history():
            thread.save(thread.load(checkpoint), metadata={"again": checkpoint.id})

        assert thread.step == 20


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize(
    "case", ["waiting_for_a_thread", "waiting_for_the_database", "waiting_for_its_turn"]
)
def test_a_save_interrupted_while_it_waits_leaves_the_store_to_everybody(
    case, signal, path
):
    [report] = run_program("interrupt_save", case, path, signal)

    assert report == {"outcome": "interrupted", "other": "saved", "same": "saved"}


def test_a_save_that_a_signal_ends_after_any_of_its_steps_leaves_no_lock(path):
    [(ended, longest, forked)] = run_program("interrupt_calls", path, 1)

    assert ended > 100
    assert longest < 2
    assert forked


# --- tasks ----------------------------------------------------------------------------


def test_two_hundred_tasks_append_to_one_thread(path):
    async def work():
        async with holdfast.open_async(path) as store:
            thread = store.thread("shared")
            saves = [thread.append(log=[n]) for n in range(200)]
            steps = [checkpoint.step for checkpoint in await asyncio.gather(*saves)]
            return steps, (await thread.load())["log"]

    steps, log = asyncio.run(work())

    assert sorted(steps) == list(range(1, 201))
    assert sorted(log) == list(range(200))


def test_cancelled_appends_are_there_or_not_and_the_others_are(path):
    seed = seed_of("cancels")
    chance = random.Random(seed)

    async def work():
        async with holdfast.open_async(path) as store:
            threads = [store.thread(f"t{n}") for n in range(20)]
            tasks = [
                asyncio.create_task(threads[n % 20].append(log=[n])) for n in range(600)
            ]
            for n in chance.sample(range(600), 300):
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)
                tasks[n].cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*(thread.append(log=[600]) for thread in threads))
            return done

    done = asyncio.run(work())

    acknowledged = [n for n, saved in enumerate(done) if not _was_cancelled(saved)]
    with holdfast.open(path) as store:
        threads = [store.thread(f"t{n}") for n in range(20)]
        found = Counter(n for thread in threads for n in thread.load()["log"])
        assert all(found[n] == 1 for n in acknowledged), f"seed {seed}"
        assert [n for n in found if found[n] > 1] == [600], f"seed {seed}"
        assert found[600] == 20, f"seed {seed}"
        assert all(map(is_one_line, threads))
        assert problems_of(store) == []
    assert len(acknowledged) < 600, f"seed {seed}: nothing was cancelled"


def _was_cancelled(saved):
    if isinstance(saved, asyncio.CancelledError):
        return True
    if isinstance(saved, BaseException):
        raise saved
    return False


# --- forks ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", ["together", "parent_closes", "child_exits", "beside_threads"]
)
def test_what_is_saved_beside_a_fork_is_there(case, path):
    [acknowledged] = run_program("forked_children", case, path)

    with holdfast.open(path) as store:
        found = {name: store.thread(name).step for name in acknowledged}
        assert found == acknowledged
        assert problems_of(store) == []


# --- two calls at the same moment -----------------------------------------------------


@pytest.mark.parametrize("call", CALLS)
def test_calls_at_the_same_moment_leave_a_sound_store(call, start, tmp_path):
    with holdfast.open(os.path.join(start, FILE)) as store:
        store.thread("main").label("marked", "third")
        assert store.get("second").parent == BEFORE_SECOND
        assert store.get("third").parent == BEFORE_THIRD

    for number, rivals in enumerate(rivals_of(call)):
        path = copy_folder(start, tmp_path / "race")
        with (
            holdfast.open(path, durability="normal") as one,
            holdfast.open(path, durability="normal") as two,
        ):
            for thread in one.threads():
                one.thread(thread.id).load()
            go_first = partial(try_all, rivals, two)
            backend = Interrupted(backend_of(one), go_first)

            code = tried(
                CALLS[call], Store(replace(one.runner.context, backend=backend))
            )

            assert problems_of(two) == [], f"{call} ({code}) after rival {number}"
            dump(two)


@pytest.mark.parametrize("round_", range(8))
def test_many_who_delete_checkpoints_at_once_all_do(round_, path):
    with contextlib.ExitStack() as stack:
        stores = [stack.enter_context(holdfast.open(path)) for _ in range(4)]
        first, *others = [stores[0].thread("t").save({"n": n}) for n in range(24)]

        def delete(place):
            for checkpoint in others[place::4]:
                stores[place].thread("t").delete(checkpoint)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(delete, range(4)))

        assert list(stores[0].thread("t").history()) == [first]
        assert stores[0].verify().ok


def test_stores_that_take_turns_never_give_a_number_twice(path):
    with holdfast.open(path) as one, holdfast.open(path) as two:
        for number in range(3):
            for store, name in ((one, "a"), (two, "b"), (two, "b"), (one, "a")):
                store.thread(name).append(log=[number])
            one.thread("a").record(f"call {number}", "made")
            two.thread("a").rewind("@~1")
        numbers = [change.seq for change in one.changes()]

    assert numbers == list(range(1, 3 * 6 + 1))
