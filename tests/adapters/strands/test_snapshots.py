"""Strands' own snapshot manager over our storage: history, restore, time travel."""

import asyncio

import pytest
from strands.session import SnapshotSessionManager
from strands.types.exceptions import StorageError

from adapters.strands.scripted import IS_OLD, agent, said
from holdfast.adapters.strands import HoldfastStorage

LATEST = "session/s1/scopes/agent/default/snapshots/snapshot_latest.json"


def manager(store, **options):
    return SnapshotSessionManager("s1", storage=HoldfastStorage(store), **options)


def always(**_):
    return True


def test_an_agent_goes_on_where_another_ended(store):
    first = agent(manager(store), ("add", {"a": 1, "b": 2}), "three")
    first.state.set("sums", 1)
    first("What is 1 + 2?")

    second = agent(manager(store), "You are welcome")
    second("Thanks")

    turns = ["What is 1 + 2?", "add()", "-> 3", "three", "Thanks"]
    assert said(second.model.asked[0]) == turns
    assert second.state.get() == {"sums": 1}


def test_snapshots_can_be_listed_restored_and_deleted(store):
    session = manager(store, snapshot_trigger=always)
    first = agent(session, "1", "2", "3")
    for text in ("a", "b", "c"):
        first(text)

    async def travel():
        ids = await session.list_snapshot_ids(first)
        after = await session.list_snapshot_ids(first, start_after=ids[0], limit=1)
        assert await session.restore_snapshot(first, snapshot_id=ids[1])
        return ids, after

    ids, after = asyncio.run(travel())
    assert len(ids) == 3
    assert after == ids[1:2]
    assert said(first.messages) == ["a", "1", "b", "2"]

    asyncio.run(session.delete_session())
    assert asyncio.run(HoldfastStorage(store).list("")) == []
    assert list(store.threads()) == []


def test_a_snapshot_beside_the_latest_does_not_become_it(filed):
    session = manager(filed)
    first = agent(session, "hello")
    first("hi")
    first.messages.append({"role": "user", "content": [{"text": "not yet"}]})
    asyncio.run(session.save_snapshot(first, is_latest=False))

    assert said(agent(manager(filed)).messages) == ["hi", "hello"]


def test_of_two_agents_on_a_session_the_slower_is_refused(store):
    agent(manager(store), "hello")("hi")
    faster, slower = (agent(manager(store), "ok", "ok") for _ in range(2))
    faster("first")

    with pytest.raises(StorageError, match="make the agent anew"):
        slower("second")

    assert said(agent(manager(store)).messages) == ["hi", "hello", "first", "ok"]


def test_every_turn_is_a_checkpoint_to_go_back_to(store):
    first = agent(manager(store), "1", "2")
    first("a")
    first("b")
    thread = HoldfastStorage(store).thread(LATEST)
    assert thread.count() == 2

    thread.rewind("@^")
    fork = thread.id.replace("/s1/", "/s2/")
    thread.fork(fork, at="@{1}")

    assert said(agent(manager(store)).messages) == ["a", "1"]
    other = SnapshotSessionManager("s2", storage=HoldfastStorage(store))
    assert said(agent(other).messages) == ["a", "1", "b", "2"]


@pytest.mark.skipif(IS_OLD, reason="agents have no storage")
def test_an_agent_uses_the_storage_that_it_was_given(filed):
    storage = HoldfastStorage(filed)
    agent(SnapshotSessionManager("s1"), "hello", storage=storage)("hi")

    assert storage.thread(LATEST).load()["messages"][0]["role"] == "user"
