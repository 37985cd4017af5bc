"""Several processes that append to one session, and one that is killed."""

import asyncio
import json
import subprocess
import sys
from collections import Counter

import pytest

from adapters.claude_agent_sdk.entries import KEY, PROJECT
from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore
from programs.append_entries import batches
from support.effort import QUICK
from support.folders import PROGRAMS
from support.programs import ENVIRONMENT

pytestmark = [
    pytest.mark.skipif(QUICK, reason="starts processes: make test"),
    pytest.mark.parametrize("place", ["file", "directory", "postgres"], indirect=True),
]


class Worker:
    """A process that appends batches, and reports each when it is durable."""

    def __init__(self, place, number, count):
        program = [sys.executable, PROGRAMS / "append_entries.py"]
        arguments = [json.dumps(place), str(number), str(count)]
        self._process = subprocess.Popen(
            [*program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        assert self.report() == "ready"

    def begin(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def report(self):
        return json.loads(self._process.stdout.readline())

    def kill(self):
        self._process.kill()
        self._process.communicate()

    def finish(self):
        self._process.communicate(timeout=100)
        assert self._process.returncode == 0


def ids(entries):
    return [entry["uuid"] for entry in entries]


def test_two_workers_lose_nothing_and_double_nothing(place, store, sessions):
    workers = [Worker(place, number, 25) for number in (1, 2)]
    for worker in workers:
        worker.begin()
    for worker in workers:
        worker.finish()

    entries = asyncio.run(sessions.load(KEY))
    wanted = {id_ for w in (1, 2) for batch in batches(w, 25) for id_ in ids(batch)}
    assert Counter(ids(entries)) == dict.fromkeys(wanted, 1)
    for number in (1, 2):
        own = [e["uuid"] for e in entries if e["message"]["content"] == f"by {number}"]
        assert own == [batch[1]["uuid"] for batch in batches(number, 25)]
    [listed] = asyncio.run(sessions.list_session_summaries(PROJECT))
    assert listed["data"]["first_prompt"] == entries[0]["message"]["content"]


def test_after_a_kill_the_session_has_what_was_reported_and_goes_on(place, store):
    worker = Worker(place, 1, 10_000)
    worker.begin()
    told = [worker.report() for _ in range(8)]
    worker.kill()

    async def body():
        sessions = HoldfastSessionStore(store)
        entries = await sessions.load(KEY)
        whole = [entry for batch in batches(1, len(entries) // 2) for entry in batch]
        assert entries == whole
        assert len(entries) >= 2 * told[-1]

        more = batches(1, len(entries) // 2 + 1)
        for batch in more[-3:]:  # the last ones may have got lost: send them again
            await sessions.append(KEY, batch)
        assert ids(await sessions.load(KEY)) == [id_ for b in more for id_ in ids(b)]

    asyncio.run(body())
