"""Many processes on one store lose nothing, wherever it is kept: the same for all."""

from __future__ import annotations

import itertools

import pytest

import holdfast
from holdfast.testing.trials.rivals import is_one_line
from holdfast.testing.trials.scenario import dump, problems_of
from support.programs import run_program

PROCESSES = 8
# Four threads in each of three processes.
CROWD = [f"{p}.{t}" for p, t in itertools.product(range(3), range(4))]


def swarm(task, url, processes, argument=0, door="blocking"):
    """What each process reports, in the order of their ranks."""
    if task != "first_open":
        holdfast.open(url).close()
    reports = run_program("parallel_tasks", task, url, processes, argument, door)
    assert [report.get("error") for report in reports] == [None] * processes
    return [report["result"] for report in reports]


def by_writer(log, key="process"):
    writers = {}
    for entry in log:
        writers.setdefault(entry[key], []).append(entry["n"])
    return writers


class CrowdTests:
    """For a subclass with a fixture ``place``, the address of a new store.

    Each process does ``count`` things, a multiple of ten.
    """

    count: int

    def test_appends_to_one_thread_are_all_there_in_order(self, place):
        steps = swarm("append", place, PROCESSES, self.count)

        total = PROCESSES * self.count
        with holdfast.open(place) as store:
            thread = store.thread("shared")
            log = thread.load()["log"]
            wanted = {rank: list(range(self.count)) for rank in range(PROCESSES)}
            assert by_writer(log) == wanted
            assert sorted(itertools.chain(*steps)) == list(range(1, total + 1))
            assert is_one_line(thread)
            assert problems_of(store) == []

    @pytest.mark.parametrize("door", ["blocking", "awaited"])
    def test_threads_of_several_processes_lose_nothing_and_the_feed_is_in_order(
        self, door, place
    ):
        swarm("crowd", place, 3, 6, door)

        wanted = {writer: list(range(6)) for writer in CROWD}
        with holdfast.open(place) as store:
            shared = store.thread("shared")
            assert by_writer(shared.load()["log"]) == wanted
            assert is_one_line(shared)
            owned = {writer: store.thread(f"own {writer}") for writer in CROWD}
            assert {w: own.load()["log"] for w, own in owned.items()} == wanted
            seqs = [change.seq for change in store.changes(limit=1000)]
            assert len(seqs) == 2 * 6 * len(CROWD)
            assert seqs == sorted(set(seqs))
            assert problems_of(store) == []

    @pytest.mark.parametrize("door", ["blocking", "awaited"])
    def test_of_rivals_for_one_version_one_wins_and_the_others_get_conflict(
        self, door, place
    ):
        conflicts = swarm("increment", place, 4, self.count // 2, door)

        with holdfast.open(place) as store:
            thread = store.thread("counter")
            assert thread.load() == {"value": 2 * self.count}
            assert thread.step == 2 * self.count
            assert is_one_line(thread)
        assert sum(conflicts) >= 3  # the first version has one winner

    def test_replicas_see_every_event_of_a_stream_once_and_in_order(self, place):
        seen = swarm("replicate", place, 3, 10)

        keys = [key for _, key in seen[0]]
        wanted = [f"{who}:{n}" for who in (0, 1, 2, "all") for n in range(10)]
        assert seen[0] == seen[1] == seen[2]
        assert sorted(keys) == sorted(wanted)
        assert seen[0] == sorted(seen[0])

    def test_a_stream_can_be_trimmed_while_others_append(self, place):
        removed, *cursors = swarm("trim", place, 3, 30)

        with holdfast.open(place) as store:
            left = [event.cursor for event in store.stream("log").events(limit=None)]
            assert (removed, left) == (55, sorted(itertools.chain(*cursors))[-5:])
            assert problems_of(store) == []

    def test_a_reader_never_sees_half_a_save(self, place):
        _, *seen = swarm("watch", place, 4, self.count)

        assert all(counts == sorted(set(counts)) for counts in seen)
        assert all(counts[-1] == self.count for counts in seen)

    def test_pruning_beside_writers_takes_nothing_that_is_to_be_kept(self, place):
        *removed, _, _, _ = swarm("prune", place, 5, 30)

        with holdfast.open(place) as store:
            assert problems_of(store) == []
            dump(store)
            shared = store.thread("shared")
            log = shared.load()["log"]
            assert by_writer(log) == {rank: list(range(30)) for rank in (2, 3, 4)}
            for rank, n in itertools.product((2, 3, 4), range(0, 30, 10)):
                found = shared.load(shared.find(label=f"{rank}:{n}"))["log"]
                assert by_writer(found)[rank] == list(range(n + 1))
        assert sum(removed) > 0

    def test_pruning_twice_at_once_removes_everything_once(self, place):
        with holdfast.open(place) as store:
            for name, n in itertools.product("abcd", range(20)):
                store.thread(name).append(log=[{"n": n, "text": "x" * 300}])

        removed = swarm("prune_once", place, 4)

        assert sum(removed) == 4 * 18
        with holdfast.open(place) as store:
            assert problems_of(store) == []
            logs = [store.thread(name).load()["log"] for name in "abcd"]
            assert [len(log) for log in logs] == [20] * 4
