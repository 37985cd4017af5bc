"""Many at once on one folder: processes, threads, tasks and forks lose nothing."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

import holdfast
from holdfast import Busy, Conflict, FormatMismatch, HoldfastError, Store
from support.effort import ROUNDS, THOROUGH, seed_of
from support.interrupts import Interrupt
from support.many_processes import CrowdTests, by_writer, is_one_line, swarm
from support.programs import run_program
from support.scenario import dump, problems_of
from support.stores import backend_of
from support.two_calls import Interrupted

FORMAT_1 = Path(__file__).parents[2] / "fixtures" / "format-1" / "history"
WORK, LOCK = ".holdfast", "lock/format-2.lock"
pytestmark = pytest.mark.processes


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def url(folder):
    return f"dir:{folder}"


def all_lines(folder):
    """How many lines each file of a folder has."""
    return {
        path.name: path.read_bytes().count(b"\n") for path in folder.glob("*.jsonl")
    }


# --- processes ------------------------------------------------------------------------


class TestProcesses(CrowdTests):
    count = 40

    @pytest.fixture
    def place(self, url):
        return url


def test_every_append_of_eight_processes_is_one_line(url, folder):
    swarm("append", url, 8, 20)

    assert all_lines(folder) == {"store.jsonl": 1, "shared-1.jsonl": 160}


def test_a_new_folder_can_be_opened_by_eight_processes_at_once(url):
    errors = swarm("first_open", url, 8, 10)

    assert errors == [[]] * 8
    for number in range(10):
        with holdfast.open(f"{url}.{number}") as store:
            assert len(store.threads()) == 8
            assert problems_of(store) == []


def test_a_folder_can_be_opened_and_closed_beside_others_who_do_the_same(url):
    swarm("reopen", url, 6, 20)

    with holdfast.open(url) as store:
        for rank in (1, 3, 5):
            log = store.thread(f"own {rank}").load()["log"]
            assert [entry["n"] for entry in log] == list(range(20))
        assert problems_of(store) == []


def test_a_backup_made_while_others_write_is_a_state_there_was(url):
    count = 40 if THOROUGH else 12
    copies, *_ = swarm("back_up", url, 5, count)

    lengths = []
    for copy in copies:
        with holdfast.open(f"dir:{copy}") as store:
            assert problems_of(store) == []
            thread = store.thread("shared")
            log = thread.load()["log"] if thread.head else []
            assert all(ns == list(range(len(ns))) for ns in by_writer(log).values())
            lengths.append(len(log))
    assert lengths == sorted(lengths)
    assert lengths[-1] == 4 * count


@pytest.mark.parametrize("door", ["blocking", "awaited"])
def test_no_acknowledged_save_is_lost_when_writers_are_killed(door, tmp_path):
    seed = seed_of("folder kills")

    [report] = run_program("random_kills", tmp_path, seed, ROUNDS // 4, "dir:", door)

    assert report["wrong"] == [], f"seed {seed}"
    assert report["acknowledged"] > ROUNDS / 20


@pytest.mark.parametrize(
    "case", ["together", "parent_closes", "child_exits", "beside_threads"]
)
def test_what_is_saved_beside_a_fork_is_there(case, url):
    [acknowledged] = run_program("forked_children", case, url)

    with holdfast.open(url) as store:
        found = {name: store.thread(name).step for name in acknowledged}
        assert found == acknowledged
        assert problems_of(store) == []


@contextlib.contextmanager
def held(folder, lock=LOCK):
    """Another process has the lock of a folder."""
    program = (
        "import fcntl, sys; file = open(sys.argv[1]);"
        "fcntl.flock(file, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(folder / WORK / lock)],
        stdin=pipe,
        stdout=pipe,
    )
    with holder:
        holder.stdout.readline()
        yield
        holder.stdin.close()


def test_a_lock_held_past_the_timeout_is_busy_and_nothing_has_changed(url, folder):
    with holdfast.open(url, busy_timeout=0.2) as store:
        thread = store.thread("t")
        thread.save({"n": 0})
        before = dump(store)

        with held(folder):
            for change in (lambda: thread.save({"n": 1}), thread.delete):
                with pytest.raises(Busy):
                    change()
            with pytest.raises(Busy):
                holdfast.open(url, busy_timeout=0.2)
            assert dump(store) == before

        assert thread.save({"n": 2}).step == 2


def test_a_save_interrupted_while_it_waits_leaves_the_folder_to_everybody(url, folder):
    with holdfast.open(url, busy_timeout=30) as store, holdfast.open(url) as other:
        store.thread("t").save({"n": 0})

        with held(folder):
            interrupt = Interrupt("save")
            interrupt.start()
            with pytest.raises(KeyboardInterrupt):
                store.thread("t").save({"n": 1})
            interrupt.join()

        assert other.thread("t").save({"n": 2}).step == 2
        assert store.thread("t").save({"n": 3}).step == 3
        assert problems_of(store) == []


# --- one process ----------------------------------------------------------------------


def test_sixteen_threads_save_to_threads_of_their_own_and_to_one(url, folder):
    def work(number):
        own, shared = store.thread(f"own {number}"), store.thread("shared")
        for n in range(10):
            own.append(log=[n])
            shared.append(log=[{"process": number, "n": n}])
        return own.load()["log"]

    with holdfast.open(url) as store, ThreadPoolExecutor(16) as pool:
        logs = list(pool.map(work, range(16)))

        assert logs == [list(range(10))] * 16
        log = store.thread("shared").load()["log"]
        assert by_writer(log) == {number: list(range(10)) for number in range(16)}
        assert is_one_line(store.thread("shared"))
        assert problems_of(store) == []
        before = dump(store)
    assert sum(all_lines(folder).values()) == 1 + 320
    shutil.rmtree(folder / WORK)
    with holdfast.open(url, cache_size=0) as store:
        assert dump(store) == before


def test_tasks_that_save_to_forks_of_one_thread_share_its_file(url, folder):
    async def work():
        async with holdfast.open_async(url) as store:
            await store.thread("t").save({"log": []})
            forks = [await store.thread("t").fork(f"fork {n}") for n in range(20)]
            saves = [fork.append(log=[n]) for n in range(5) for fork in forks]
            await asyncio.gather(*saves)
            return [sorted((await fork.load())["log"]) for fork in forks]

    assert asyncio.run(work()) == [list(range(5))] * 20
    text = (folder / "t-1.jsonl").read_text()
    assert text.count("\n") == 1 + 20 + 100
    assert '"part":[2,' in text
    shutil.rmtree(folder / WORK)
    with holdfast.open(url) as store:
        assert store.stats().checkpoints == 101
        assert problems_of(store) == []


def test_one_failing_save_does_not_fail_those_committed_with_it(url):
    def work(number):
        if number % 2:
            own = store.thread(f"own {number}")
            return [own.append(log=[n]).step for n in range(10)]
        lost = 0
        for n in range(10):
            try:
                store.thread("contested").save({"n": n}, expect=None)
            except Conflict:
                lost += 1
        return lost

    with holdfast.open(url) as store, ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))

        assert results[1::2] == [list(range(1, 11))] * 4
        assert sum(results[::2]) == 4 * 10 - 1
        assert problems_of(store) == []


def test_a_file_replaced_between_plan_and_prune_is_not_pruned_by_old_numbers(
    url, folder
):
    with holdfast.open(url) as store:
        chat = store.thread("chat")
        chat.save({"n": 0})
        start = (folder / "chat-1.jsonl").read_bytes()
        chat.save({"old": 1})
        chat.save({"old": 2})

        def replace_file():
            (folder / "chat-1.jsonl").write_bytes(start)
            with holdfast.open(url) as other:
                other.thread("chat").save({"new": 1})
                other.thread("chat").save({"new": 2})

        backend = Interrupted(backend_of(store), replace_file)
        Store(replace(store.runner.context, backend=backend)).thread("chat").delete(
            "@~1"
        )

        assert [store.load(c) for c in chat.history()] == [{"new": 2}, {"n": 0}]
        assert problems_of(store) == []


def test_the_lock_of_format_1_is_taken_from_who_has_had_the_folder_open(url, folder):
    shutil.copytree(FORMAT_1, folder)
    (folder / WORK).mkdir()
    older = folder / WORK / "lock"
    older.write_bytes(b"0")
    first = (folder / "store.jsonl").read_bytes()

    with held(folder, "lock"):
        with pytest.raises(Busy):
            holdfast.open(url, busy_timeout=0.2)
        with pytest.raises(Busy):
            holdfast.open(url, busy_timeout=0.2, read_only=True)
    with holdfast.open(url, read_only=True) as store:
        assert store.thread("chat").load() is not None
    assert older.read_bytes() == b"0"
    assert (folder / "store.jsonl").read_bytes() == first

    with holdfast.open(url) as store:
        assert problems_of(store) == []
        with pytest.raises(IsADirectoryError):
            os.open(older, os.O_RDWR | os.O_CREAT)  # what every change begins with
    assert b'"format":2' in (folder / "store.jsonl").read_bytes().splitlines()[0]
    with holdfast.open(url, read_only=True) as store:
        assert problems_of(store) == []


def test_a_newer_format_stops_who_has_the_folder_open(url, folder):
    """What the next format has to do."""
    with holdfast.open(url) as store:
        store.thread("t").save(1)
        (folder / WORK / LOCK).unlink()
        (folder / WORK / LOCK).mkdir()

        for change in (lambda: store.thread("t").save(2), lambda: store.delete("t")):
            with pytest.raises(FormatMismatch, match="start this program again"):
                change()
        assert store.thread("t").load() == 1


@pytest.mark.parametrize("is_dangling", [True, False])
def test_a_lock_that_is_a_link_is_refused(is_dangling, url, folder, tmp_path):
    holdfast.open(url).close()
    shutil.rmtree(folder / WORK / "lock")
    (folder / WORK / "lock").symlink_to(tmp_path / "no" if is_dangling else tmp_path)

    with pytest.raises(HoldfastError, match="symbolic link"):
        holdfast.open(url)

    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_a_closed_store_leaves_the_lock_and_the_index_behind(url, folder):
    with holdfast.open(url) as store:
        store.thread("t").save(1)

    left = sorted(os.listdir(folder / WORK))
    assert [name for name in left if not name.startswith("index-")] == [
        ".gitignore",
        "lock",
    ]
    assert len(left) == 3
