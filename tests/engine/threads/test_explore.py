"""Explorations that are killed, interrupted, cancelled, and that run side by side."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

import holdfast
from support.folders import PROGRAMS, ROOT


@pytest.fixture
def chat(path):
    with holdfast.open(path) as store:
        store.thread("chat").save({"messages": []})
        yield store.thread("chat")


def explored(*arguments):
    program = [sys.executable, str(PROGRAMS / "explore_branches.py"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    return subprocess.run(
        program, env=environment, capture_output=True, text=True, check=False
    )


def test_a_killed_exploration_goes_on_without_repeating_what_had_ended(path, tmp_path):
    log = tmp_path / "log"

    killed = explored(path, str(log), "2")
    again = explored(path, str(log))

    assert killed.returncode == -signal.SIGKILL
    assert log.read_text().split() == ["1", "2", "2", "3"]
    # The second branch goes on from what it had saved before the kill.
    assert json.loads(again.stdout) == [
        [1, "finished", 2],
        [2, "finished", 3],
        [3, "finished", 2],
    ]
    with holdfast.open(path) as store:
        assert store.verify().ok


def test_an_interrupted_exploration_goes_on_with_what_had_not_ended(chat):
    ran = []

    def die_in_the_second(branch):
        ran.append(branch.number)
        branch.thread.append(messages=["first"])
        if branch.number == 2:
            raise KeyboardInterrupt

    def work(branch):
        ran.append(branch.number)
        branch.thread.append(messages=["second"])

    with pytest.raises(KeyboardInterrupt):
        chat.explore(die_in_the_second, n=3, at_once=1)
    begun = list(ran)
    found = chat.explore(work, n=3, at_once=1)

    assert begun[:2] == [1, 2]
    assert {n: found.branches[n - 1].steps for n in (1, 2)} == {1: 1, 2: 2}
    assert ran.count(1) == 1
    assert ran.count(2) == 2


def test_branches_that_an_interruption_ends_go_on_later(chat):
    began, interrupted = threading.Event(), threading.Event()

    def work(branch):
        branch.thread.append(messages=["more"])
        if branch.number == 2 and not interrupted.is_set():
            began.wait(60)
            interrupted.set()
            raise KeyboardInterrupt
        began.set()
        return not interrupted.is_set() or branch.thread.step < 4

    with pytest.raises(KeyboardInterrupt):
        chat.explore(work, n=2)

    assert {one.status for one in chat.explore(work, n=2)} == {"finished"}


def test_branches_run_at_the_same_time(chat):
    together = threading.Barrier(3, timeout=60)

    def meet(branch):
        together.wait()
        branch.thread.append(messages=["met"])

    found = chat.explore(meet, n=3)

    assert {one.status for one in found} == {"finished"}


def test_tokens_are_counted_on_after_an_interruption(chat):
    def spend_and_die(branch):
        branch.spend(tokens=5)
        if branch.tokens == 10:
            raise KeyboardInterrupt
        return True

    def spend(branch):
        assert branch.resumed
        branch.spend(tokens=5)

    with pytest.raises(KeyboardInterrupt):
        chat.explore(spend_and_die, n=1)

    # The call that was interrupted had not ended, so what it spent is not known.
    assert chat.explore(spend, n=1).best.tokens == 10


class TestAwaited:
    @pytest.fixture
    def run(self, path):
        """Runs a function with a new thread of an async store."""

        def run(work):
            async def opened():
                async with await holdfast.open_async(path) as store:
                    chat = store.thread("chat")
                    await chat.save({"messages": []})
                    return await work(chat)

            return asyncio.run(opened())

        return run

    def test_a_branch_whose_time_is_up_is_cancelled(self, run):
        async def hang(branch):
            await branch.thread.append(messages=["begun"])
            await asyncio.Event().wait()

        async def work(chat):
            return await chat.explore(hang, n=2, seconds=0.2, score=lambda _: 1)

        found = run(work)

        assert {(one.status, one.error, one.score) for one in found} == {
            ("stopped", "used up its seconds", 1)
        }

    def test_a_branch_that_has_found_it_cancels_those_that_wait(self, run):
        async def search(branch):
            if branch.number == 1:
                await asyncio.Event().wait()
            await branch.thread.append(messages=["found"])
            branch.stop_others()

        async def work(chat):
            return await chat.explore(search, n=2, score=lambda one: one.number)

        found = run(work)

        assert [(one.number, one.status) for one in found] == [
            (2, "finished"),
            (1, "stopped"),
        ]

    def test_a_branch_that_is_cancelled_is_one_result_among_others(self, run):
        async def cancel_itself(branch):
            if branch.number == 1:
                raise asyncio.CancelledError

        async def work(chat):
            return await chat.explore(cancel_itself, n=2)

        found = run(work)

        assert {one.number: one.status for one in found} == {1: "failed", 2: "finished"}

    def test_a_cancelled_exploration_cancels_its_branches_and_goes_on_later(self, run):
        ran = []

        async def hang(branch):
            ran.append(branch.number)
            await branch.thread.append(messages=["begun"])
            if branch.number == 2 and not branch.resumed and ran.count(2) == 1:
                await asyncio.Event().wait()

        async def work(chat):
            first = asyncio.create_task(chat.explore(hang, n=2, at_once=1))
            while 2 not in ran:
                await asyncio.sleep(0.001)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            return await chat.explore(hang, n=2, at_once=1)

        found = run(work)

        assert ran == [1, 2, 2]
        assert {one.status for one in found} == {"finished"}
