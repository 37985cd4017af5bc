"""Events of MCP sessions: a client that loses its connection misses nothing."""

import asyncio
from datetime import timedelta

import pytest
from mcp import types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

import holdfast
from adapters.mcp_events.served import Counting, Session, messages, serving, steps
from holdfast.adapters.mcp_events import HoldfastEventStore
from holdfast.errors import NotFound, Unstorable
from holdfast.testing import FakeClock


def note(n):
    return types.JSONRPCNotification(
        jsonrpc="2.0", method="notifications/message", params={"data": n}
    )


async def replayed(events, last):
    """The stream's id, and the ids and numbers of what is sent after an event."""
    sent = []

    async def send(event):
        assert event.message.jsonrpc == "2.0"
        sent.append((event.event_id, event.message.params["data"]))

    return await events.replay_events_after(last, send), sent


def test_what_came_after_an_event_on_its_stream_is_replayed(place):
    address, options = place

    async def body():
        events = HoldfastEventStore(address, **options)
        primed = await events.store_event("1", None)
        other = await events.store_event("ümlaut - 2", None)
        ids = [await events.store_event("1", note(n)) for n in range(3)]
        there = await events.store_event("ümlaut - 2", note("there"))
        replica = events
        if address != ":memory:":
            replica = HoldfastEventStore(address, **options)

        sent = list(zip(ids, range(3), strict=True))
        assert await replayed(replica, primed) == ("1", sent)
        assert await replayed(replica, ids[1]) == ("1", sent[2:])
        assert await replayed(replica, ids[2]) == ("1", [])
        assert await replayed(replica, other) == ("ümlaut - 2", [(there, "there")])
        for unknown in ("", "1", "shared", f"another-{ids[0].partition('-')[2]}"):
            assert await replayed(replica, unknown) == (None, [])
        await events.close()
        await replica.close()

    asyncio.run(body())


def test_old_events_and_silent_sessions_are_removed():
    clock = FakeClock()

    async def body():
        store = await holdfast.open_async(":memory:", clock=clock)
        await store.stream("mcp:silent").append({})
        await store.stream("other").append({})
        clock.advance(timedelta(hours=2))
        events = HoldfastEventStore(store, keep=10, keep_for=timedelta(hours=1))
        ids = [await events.store_event("1", note(n)) for n in range(25)]

        assert [t.id for t in await store.threads()] == [
            "stream:mcp:shared",
            "stream:other",
        ]
        kept = await store.stream("mcp:shared").events(limit=None)
        assert [event.value["message"]["params"]["data"] for event in kept] == list(
            range(10, 25)
        )
        _, sent = await replayed(events, ids[9])
        assert len(sent) == 15
        with pytest.raises(NotFound):
            await replayed(events, ids[0])
        await store.close()

    asyncio.run(body())


def test_how_many_events_are_kept_must_be_a_number():
    with pytest.raises(Unstorable):
        HoldfastEventStore(":memory:", keep=0)


def test_a_client_that_loses_its_connection_misses_nothing(tmp_path):
    server = Counting()
    with (
        holdfast.open(tmp_path / "agents.db") as store,
        serving(HoldfastEventStore(store), server) as port,
    ):
        session, other = Session(port), Session(port)
        with session.count(5) as answer:
            told = messages(answer)
            found = [next(told), next(told)]  # the priming event and the first step
        with other.count(3) as answer:
            server.gate.set()
            assert steps(messages(answer)) == [1, 2, 3, "answer"]

        with session.resumed(found[-1][0]) as answer:
            rest = [*messages(answer)]

        assert steps(found) + steps(rest) == [1, 2, 3, 4, 5, "answer"]
        with session.resumed(rest[1][0]) as answer:
            assert steps(messages(answer)) == [4, 5, "answer"]
        with other.resumed(found[-1][0]) as answer:
            assert steps(messages(answer)) == []  # another session's event


def test_the_client_of_the_sdk_resumes_by_itself(tmp_path):
    server = Counting()
    told = []

    async def progress(done, total, message):
        told.append((done, total, message))
        server.gate.set()

    async def body(port):
        transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp")
        async with Client(transport, mode="legacy") as client:
            arguments = {"to": 4, "lose": True}
            return await client.call_tool(
                "count", arguments, progress_callback=progress
            )

    events = HoldfastEventStore(str(tmp_path / "agents.db"))
    with serving(events, server) as port:
        result = asyncio.run(body(port))
    asyncio.run(events.close())

    assert result.content[0].text == "counted to 4"
    assert told == [(n, 4, str(n)) for n in range(1, 5)]
