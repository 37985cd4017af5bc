"""Real runs: each turn in a new store, rewound, forked, raced and killed."""

import asyncio
import json
import signal
import subprocess
import sys

import pytest

import holdfast
from adapters.google_adk.agents import (
    HERE,
    event,
    opened,
    runner,
    texts,
    turn,
)
from holdfast.adapters.google_adk import (
    HoldfastArtifactService,
    HoldfastSessionService,
    session_thread,
)
from inner.google_adk import StaleSession
from support.programs import ENVIRONMENT

pytestmark = pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")

THREAD = session_thread("app", "ann", "s1")


async def begun(store):
    await HoldfastSessionService(store).create_session(**HERE)


async def found(store, session="s1"):
    where = {"app_name": "app", "user_id": "ann", "session_id": session}
    return await HoldfastSessionService(store).get_session(**where)


@pytest.fixture
def durable(place):
    """A place that stays when its store is closed."""
    if place[0] == ":memory:":
        pytest.skip("a store in memory ends with its process")
    return place


def test_every_turn_may_have_a_store_of_its_own(durable):
    async def body():
        async with opened(durable) as store:
            await begun(store)
        for number in (1, 2):
            async with opened(durable) as store:
                events = await turn(runner(HoldfastSessionService(store)))
                assert events[-1].content.parts[0].text == f"counted {number}"
        async with opened(durable) as store:
            session = await found(store)
            assert session.state == {"n": 2, "user:total": 2}
            told = [e for e in session.events if e.content]
            assert len(told) == 8
            assert [e.author for e in told] == ["user", *["counter"] * 3] * 2

    asyncio.run(body())


def test_a_rewind_of_the_framework_takes_back_the_state_of_the_session(place):
    async def body():
        async with opened(place) as store:
            await begun(store)
            sessions = HoldfastSessionService(store)
            running = runner(sessions, artifact_service=HoldfastArtifactService(store))
            await turn(running)
            second = await turn(running)
            before = second[0].invocation_id
            await running.rewind_async(
                user_id="ann",
                session_id="s1",
                rewind_before_invocation_id=before,
            )
            session = await found(store)
            assert (session.state["n"], session.state["user:total"]) == (1, 2)
            third = await turn(running)
            assert third[-1].content.parts[0].text == "counted 2"

    asyncio.run(body())


def test_a_fork_and_a_rewind_of_the_store_give_sessions_that_go_on(place):
    async def body():
        async with opened(place) as store:
            await begun(store)
            sessions = HoldfastSessionService(store)
            running = runner(sessions)
            await turn(running)
            one_turn = await store.thread(THREAD).step
            await turn(running)
            stale = await found(store)

            thread = store.thread(THREAD)
            await thread.fork(session_thread("app", "ann", "s2"), at=f"@{one_turn}")
            forked = await turn(running, session="s2")
            assert forked[-1].content.parts[0].text == "counted 2"
            await thread.rewind(f"@{one_turn}")
            with pytest.raises(StaleSession):
                await sessions.append_event(stale, event())
            again = await turn(running)
            assert again[-1].content.parts[0].text == "counted 2"
            listed = await sessions.list_sessions(app_name="app", user_id="ann")
            assert [s.id for s in listed.sessions] == ["s2", "s1"]
            assert (await found(store, "s2")).state == {"n": 2, "user:total": 4}

    asyncio.run(body())


def test_two_workers_that_try_again_lose_no_event(durable):
    """Each has a store of its own on the same place, as two processes have."""

    async def work(sessions, name, count):
        refused = 0
        for number in range(count):
            while True:
                session = await sessions.get_session(**HERE)
                seen = session.state.get("n", 0)
                told = event(f"{name}{number}", state={"n": seen + 1})
                try:
                    await sessions.append_event(session, told)
                except StaleSession:
                    refused += 1
                else:
                    break
        return refused

    async def body():
        async with opened(durable) as one, opened(durable) as other:
            await begun(one)
            await asyncio.gather(
                work(HoldfastSessionService(one), "a", 15),
                work(HoldfastSessionService(other), "b", 15),
            )
            session = await found(one)
            assert session.state["n"] == len(session.events) == 30
            for name in "ab":
                mine = [text for text in texts(session) if text[0] == name]
                assert mine == [f"{name}{n}" for n in range(15)]

    asyncio.run(body())


def run(place, *arguments):
    address, options = place
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "adapters.google_adk.turn",
            address,
            json.dumps(options),
            *arguments,
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )


def test_a_killed_invocation_goes_on_in_a_new_process_without_its_tool(durable):
    address, options = durable

    async def first_turn():
        async with opened(durable) as store:
            await begun(store)
            await turn(runner(HoldfastSessionService(store)))

    asyncio.run(first_turn())
    assert run(durable, "killed").returncode == -signal.SIGKILL
    with holdfast.open(address, **options) as store:
        messages = store.thread(THREAD).load()["messages"]
        invocation = messages[-1]["invocation_id"]
        [result] = messages[-1]["content"]["parts"]
    resumed = run(durable, "whole", invocation)

    assert result["function_response"]["response"] == {"n": 2}
    assert json.loads(resumed.stdout)[-1] == "counted 2"
    with holdfast.open(address, **options) as store:
        assert store.thread(THREAD).values("state:n") == {"state:n": 2}
        assert store.verify().problems == ()
