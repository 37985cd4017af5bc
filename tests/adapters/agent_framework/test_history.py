"""Histories and sessions of agents."""

import asyncio

import agent_framework
import pytest
from agent_framework import AgentSession, Content, Message

import holdfast
from adapters.agent_framework.workflows import agent
from holdfast.adapters.agent_framework import HoldfastHistoryProvider

IDS = ["s", "s/1", "s%2F1", "", "history:s", "\0", "ü" * 300, None]


def opened(place):
    address, options = place
    return holdfast.open(address, **options)


def texts(messages):
    return [message.text for message in messages]


def test_the_model_sees_the_whole_conversation_on_every_backend(place):
    async def body(store):
        for number in range(3):
            provider = HoldfastHistoryProvider(store)  # nothing is kept in it
            one, client = agent(provider)
            await one.run(f"question {number}", session=AgentSession(session_id="s"))
            seen.extend(client.seen)
        assert texts(await provider.get_messages("s"))[-2:] == [
            "question 2",
            "answer 1",
        ]

    seen = []
    with opened(place) as store:
        asyncio.run(body(store))
        assert seen == [1, 3, 5]
        history = store.thread("history:s")
        assert history.step == 3
        history.rewind("@1")
        asyncio.run(body(store))
    assert seen[3:] == [3, 5, 7]


def test_two_runs_that_add_at_once_lose_nothing(place):
    async def body(store):
        provider = HoldfastHistoryProvider(store)

        async def add(writer):
            for number in range(10):
                pair = [Message("user", [f"{writer}{number}"]) for _ in "ab"]
                await provider.save_messages("s", pair)

        await asyncio.gather(add("x"), add("y"))
        said = texts(await provider.get_messages("s"))
        assert len(said) == 40
        assert said[::2] == said[1::2]  # what was added together stays together
        for writer in "xy":
            of_writer = [text for text in said[::2] if text[0] == writer]
            assert of_writer == [f"{writer}{number}" for number in range(10)]

    with opened(place) as store:
        asyncio.run(body(store))


def test_a_session_whose_history_was_deleted_begins_again(place):
    async def body(store):
        provider = HoldfastHistoryProvider(store)
        await provider.save_messages("s", [Message("user", ["before"])])
        store.delete("history:s")

        both = [[Message("user", [text])] for text in ("one", "two")]
        await asyncio.gather(*(provider.save_messages("s", new) for new in both))

        assert sorted(texts(await provider.get_messages("s"))) == ["one", "two"]

    with opened(place) as store:
        asyncio.run(body(store))


def test_calls_and_results_come_back():
    call = Content.from_function_call("c", "pay", arguments='{"to": "ann"}')
    result = Content.from_function_result("c", result="paid")
    given = [Message("assistant", [call]), Message("tool", [result])]

    async def body():
        provider = HoldfastHistoryProvider(":memory:")
        await provider.save_messages("s", given)
        found = await provider.get_messages("s")
        await provider.close()
        return found

    found = asyncio.run(body())

    assert [one.to_dict() for one in found] == [one.to_dict() for one in given]


def test_sessions_scopes_and_sources_are_kept_apart():
    async def body(store):
        kept = [
            HoldfastHistoryProvider(store),
            HoldfastHistoryProvider(store, "audit", load_messages=False),
            HoldfastHistoryProvider(store, "s"),
            HoldfastHistoryProvider(store, scope="acme"),
        ]
        for number, provider in enumerate(kept):
            for id_ in IDS:
                message = Message("user", [f"{number} {id_}"])
                await provider.save_messages(id_, [message])

        for number, provider in enumerate(kept):
            for id_ in IDS:
                found = await provider.get_messages(id_)
                assert texts(found) == [f"{number} {id_}"]
        assert await kept[0].get_messages("unknown") == []
        await kept[0].save_messages("unknown", [])

    with holdfast.open(":memory:") as store:
        asyncio.run(body(store))


# --- sessions -------------------------------------------------------------------------

has_session_store = pytest.mark.skipif(
    not hasattr(agent_framework, "SessionStore"), reason="it came with a later release"
)


@has_session_store
@pytest.mark.filterwarnings("ignore:.*SESSION_STORE")
def test_a_session_is_stored_replaced_and_deleted(place):
    from holdfast.adapters.agent_framework import (
        HoldfastSessionStore,
    )

    async def body(store):
        sessions = HoldfastSessionStore(store)
        assert await sessions.get("x") is None
        one, client = agent(agent_framework.InMemoryHistoryProvider())
        for number in range(3):
            session = await sessions.get("x") or AgentSession(session_id="s")
            await one.run(f"question {number}", session=session)
            await sessions.set("x", session)
            await sessions.set("x", session)
        assert client.seen == [1, 3, 5]
        found = await sessions.get("x")
        assert found.to_dict() == session.to_dict()

        await sessions.delete("x")
        await sessions.delete("x")
        assert await sessions.get("x") is None
        await sessions.set("x", AgentSession(session_id="new"))
        assert (await sessions.get("x")).session_id == "new"
        with pytest.raises(ValueError, match="non-empty"):
            await sessions.get("")

    with opened(place) as store:
        asyncio.run(body(store))


@has_session_store
@pytest.mark.filterwarnings("ignore:.*SESSION_STORE")
def test_each_stored_session_is_a_checkpoint_with_its_messages():
    from holdfast.adapters.agent_framework import (
        HoldfastSessionStore,
    )

    async def body(store):
        sessions = HoldfastSessionStore(store)
        session = AgentSession(session_id="s")
        one, _ = agent(agent_framework.InMemoryHistoryProvider())
        for number in range(2):
            await one.run(f"question {number}", session=session)
            await sessions.set("x", session)
        thread = store.thread("session:x")
        assert (thread.step, len(thread.load()["messages"])) == (2, 4)
        thread.rewind("@1")
        kept = (await sessions.get("x")).state["in_memory"]["messages"]
        assert texts(kept) == ["question 0", "answer 1"]

    with holdfast.open(":memory:") as store:
        asyncio.run(body(store))
