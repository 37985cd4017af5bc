"""What the SDK asks of a session store, on every backend."""

import asyncio
import copy
from itertools import chain, count

import apsw
import pytest
from claude_agent_sdk import ClaudeSDKError, fold_session_summary
from claude_agent_sdk.testing import run_session_store_conformance

import holdfast
from adapters.claude_agent_sdk.entries import (
    AGENT,
    KEY,
    OTHER,
    PROJECT,
    SESSION,
    replied,
    said,
    titled,
)
from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore
from holdfast.testing import FakeClock

FORK = {**KEY, "session_id": OTHER}
BATCH = [said(1, "hi"), titled("Greeting"), replied(2, "hello")]


def test_the_contracts_of_the_sdk_hold(store):
    numbers = count()

    def fresh():
        return HoldfastSessionStore(store.scope(f"store-{next(numbers)}"))

    asyncio.run(run_session_store_conformance(fresh))

    assert next(numbers) > 14


def test_an_entry_is_appended_once(sessions):
    async def body():
        await sessions.append(KEY, BATCH)
        await sessions.append(KEY, copy.deepcopy(BATCH))
        assert await sessions.load(KEY) == BATCH

        # Sent again together with what is new.
        await sessions.append(KEY, [*BATCH, said(3, "bye"), said(3, "bye")])
        assert await sessions.load(KEY) == [*BATCH, said(3, "bye")]

        # The part that is known need not be the first.
        await sessions.append(KEY, [said(4, "more"), BATCH[2], titled("Again")])
        added = (await sessions.load(KEY))[4:]
        assert added == [said(4, "more"), titled("Again")]

    asyncio.run(body())


@pytest.mark.parametrize("place", ["file", "postgres"], indirect=True)
def test_an_async_store_is_used_where_it_is_awaited(place):
    address, options = place

    async def body():
        async with holdfast.open_async(address, **options) as store:
            sessions = HoldfastSessionStore(store)
            await asyncio.gather(*(sessions.append(KEY, BATCH) for _ in range(5)))
            assert await sessions.load(KEY) == BATCH
            await sessions.close()
            assert len(await sessions.list_sessions(PROJECT)) == 1

    asyncio.run(body())


def test_entries_without_an_id_are_all_appended(memory):
    async def body():
        sessions = HoldfastSessionStore(memory)
        for entry in [titled("a"), titled("a"), {"type": "mode", "uuid": ""}]:
            await sessions.append(KEY, [entry])
        assert len(await sessions.load(KEY)) == 3

    asyncio.run(body())


def test_what_a_rewind_took_back_can_be_appended_again(sessions):
    async def body():
        await sessions.append(KEY, BATCH)
        await sessions.append(KEY, [said(3, "bye"), titled("Farewell")])
        await sessions.thread(KEY).rewind("@~1")
        assert await sessions.load(KEY) == BATCH
        [summary] = await sessions.list_session_summaries(PROJECT)
        assert summary["data"]["custom_title"] == "Greeting"

        await sessions.append(KEY, [said(3, "bye")])
        await sessions.append(KEY, [said(3, "bye")])
        assert await sessions.load(KEY) == [*BATCH, said(3, "bye")]

    asyncio.run(body())


def test_a_fork_is_a_session_that_knows_the_entries_it_began_with(sessions):
    async def body():
        await sessions.append(KEY, BATCH)
        await sessions.append(KEY, [said(3, "bye")])
        await sessions.thread(KEY).fork(sessions.thread(FORK).id, at="@~1")
        await sessions.append(FORK, BATCH)
        await sessions.append(FORK, [BATCH[0], said(4, "go on")])
        await sessions.append(FORK, [BATCH[0], said(4, "go on")])

        assert await sessions.load(FORK) == [*BATCH, said(4, "go on")]
        assert await sessions.load(KEY) == [*BATCH, said(3, "bye")]
        listed = [s["session_id"] for s in await sessions.list_sessions(PROJECT)]
        assert listed == [OTHER, SESSION]

    asyncio.run(body())


def test_what_was_deleted_can_begin_again(sessions):
    async def body():
        await sessions.append(KEY, BATCH)
        await sessions.append(AGENT, [said(7, "look")])
        await sessions.delete(KEY)
        assert await sessions.load(AGENT) is None
        await sessions.append(KEY, BATCH)
        assert await sessions.load(KEY) == BATCH
        assert await sessions.list_subkeys(KEY) == []

    asyncio.run(body())


def test_a_summary_is_what_folding_all_entries_gives(sessions):
    long = said(1, "why? " * 60)
    batches = [[long], [titled("A")], [replied(2, "because"), titled("B")]]

    async def body():
        for batch in batches:
            await sessions.append(KEY, batch)
            await sessions.append(AGENT, [titled("of a subagent")])
        # An edit beside the SDK: the next append folds everything again.
        await sessions.thread(KEY).amend(values={"summary": {}}, kind="edit")
        await sessions.append(KEY, [replied(3, "and so on")])
        return await sessions.list_session_summaries(PROJECT)

    [summary] = asyncio.run(body())
    entries = [*chain(*batches), replied(3, "and so on")]
    assert summary["data"] == fold_session_summary(None, KEY, entries)["data"]
    assert (summary["session_id"], len(summary["data"]["first_prompt"])) == (
        SESSION,
        200,
    )


def test_times_follow_the_commits_also_within_a_millisecond():
    clock = FakeClock()
    with holdfast.open(":memory:", clock=clock) as store:
        sessions, seen = HoldfastSessionStore(store), {}

        async def times():
            listed = await sessions.list_sessions(PROJECT)
            summaries = await sessions.list_session_summaries(PROJECT)
            found = {s["session_id"]: s["mtime"] for s in listed}
            assert found == {s["session_id"]: s["mtime"] for s in summaries}
            return found

        async def body():
            for number, name in enumerate("abbbcaccbaab"):
                clock.now -= 20  # a clock that was set back
                await sessions.append({**KEY, "session_id": name}, [said(number, "x")])
                found = await times()
                assert max(found, key=found.get) == name
                assert len(set(found.values())) == len(found)
                assert found[name] > seen.get(name, 0)
                seen[name] = found[name]

        asyncio.run(body())


@pytest.mark.parametrize(
    "names",
    [
        [("a/b", "c"), ("a", "b/c"), ("a", "b")],
        [("a", "b%2Fc"), ("a%2Fb", "c"), ("a", "B")],
        [("größe", "ß"), ("a\0b", "\x1f"), ("\ud83d", " ")],
        [("", "b"), ("a", ""), ("claude:a", "b")],
    ],
)
def test_no_two_keys_mean_the_same_transcript(names, sessions):
    keys = [{"project_key": project, "session_id": id_} for project, id_ in names]
    subpath = "subagents/wörk%2Flow/agent 1"

    async def body():
        for number, key in enumerate(keys):
            await sessions.append(key, [said(number, "x")])
            await sessions.append({**key, "subpath": subpath}, [said(number, "y")])
        for number, key in enumerate(keys):
            assert await sessions.load(key) == [said(number, "x")]
            assert await sessions.list_subkeys(key) == [subpath]
            listed = await sessions.list_sessions(key["project_key"])
            assert key["session_id"] in [one["session_id"] for one in listed]
        await sessions.delete(keys[0])
        assert [await sessions.load(key) is None for key in keys] == [
            True,
            False,
            False,
        ]

    asyncio.run(body())


@pytest.mark.parametrize(
    ("key", "entries", "wrong"),
    [
        ({**KEY, "subpath": ""}, BATCH, "subpath"),
        ({**KEY, "session_id": 7}, BATCH, "session_id"),
        ({"session_id": "s"}, BATCH, "project_key"),
        (KEY, [{"type": "user"}, "text"], "entries"),
        (KEY, {"type": "user"}, "entries"),
        (KEY, [{"type": "user", "uuid": "u" * 600}], "journal key"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_name(key, entries, wrong, memory):
    sessions = HoldfastSessionStore(memory)

    with pytest.raises(holdfast.errors.Unstorable, match=wrong):
        asyncio.run(sessions.append(key, entries))

    assert len(memory.threads()) == 0


def test_a_busy_store_raises_what_the_sdk_retries(tmp_path):
    path = str(tmp_path / "agents.db")
    sessions = HoldfastSessionStore(path, busy_timeout=0.05)
    rival = apsw.Connection(path)

    async def body():
        async with sessions:
            await sessions.append(KEY, BATCH)
            rival.execute("begin immediate")
            with pytest.raises(ClaudeSDKError, match="busy") as raised:
                await sessions.append(KEY, [said(3, "bye")])
            assert not isinstance(raised.value, TimeoutError)
            rival.execute("rollback")
            await sessions.append(KEY, [said(3, "bye")])
            assert len(await sessions.load(KEY)) == 4

    asyncio.run(body())


def test_an_append_costs_what_it_appends(memory):
    sessions = HoldfastSessionStore(memory)
    thread = memory.thread(sessions.thread(KEY).id)

    async def body(numbers):
        for number in numbers:
            await sessions.append(KEY, [said(number, "a question " * 20)])

    def stored():
        return sum(one.stored_bytes for one in memory.heaviest())

    asyncio.run(body(range(10)))
    before = stored()
    asyncio.run(body(range(10, 20)))
    early = stored() - before
    asyncio.run(body(range(20, 500)))
    before = stored()
    asyncio.run(body(range(500, 510)))

    assert stored() - before < 1.2 * early
    assert thread.step == 510


def test_an_append_that_is_cancelled_is_finished_first(sessions):
    async def body():
        appending = asyncio.create_task(sessions.append(KEY, BATCH))
        await asyncio.sleep(0)
        appending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await appending
        assert await sessions.load(KEY) == BATCH

    asyncio.run(body())
