"""The server in a program of one's own, and what it makes of unusual stores."""

from __future__ import annotations

import asyncio
import json

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

import holdfast
from holdfast.mcp import http_app, make_server
from inner.tools import LARGEST
from support.toolsets import json_size


@pytest.fixture
def desk(tmp_path):
    """Runs a test's coroutine with a client and the store it is a client of."""

    async def serve(talk, options):
        opening = holdfast.open_async(str(tmp_path / "store.db"), **options)
        async with opening as store, Client(make_server(store)) as client:
            return await talk(client, store)

    def run(talk, **options):
        return asyncio.run(serve(talk, options))

    return run


async def read(client, uri):
    [contents] = (await client.read_resource(uri)).contents
    found = json.loads(contents.text)
    assert json_size(found) <= LARGEST
    return found


async def pages(client, uri):
    found = []
    while uri:
        page = await read(client, uri)
        found.append(page)
        uri = page.get("next")
    return found


def address(checkpoint):
    return f"holdfast://checkpoint/{checkpoint.id}"


def test_resources_are_listed_page_by_page(desk):
    async def talk(client, store):
        for n in range(120):
            await store.thread(f"t{n}").save({"n": n})
        names, cursor, sizes = [], None, []
        while True:
            page = await client.list_resources(cursor=cursor)
            names += [resource.name for resource in page.resources]
            sizes.append(len(page.resources))
            cursor = page.next_cursor
            if cursor is None:
                return names, sizes

    names, sizes = desk(talk)

    assert sizes == [50, 50, 20]
    assert names == [f"t{n}" for n in reversed(range(120))]


def test_a_checkpoint_with_many_conversations_is_read_page_by_page(desk):
    ids = sorted(f"{n:03}-{'ä' * 200}" for n in range(210))

    async def talk(client, store):
        await store.agents.save(holdfast.Agent(id="a"))
        for id_ in ids:
            await store.conversations.create(id_, agent="a")
        kept = await store.agents.checkpoint("a")
        return await pages(client, address(kept))

    found = desk(talk)

    held = [holding["thread"] for page in found for holding in page["holds"]]
    assert held == ["agent:a", *(f"conversation:{id_}" for id_ in ids)]
    assert len(found) > 1
    assert {page["total"] for page in found} == {211}


@pytest.mark.parametrize(
    ("state", "part", "value"),
    [
        ({"a.b": 1}, "a.b", 1),
        ({"a": {"b.c": [1, 2]}}, "a.b.c", [1, 2]),
        ({"messages": ["x", "y"]}, "messages.1", "y"),
        ([1, "two"], "state.1", "two"),
        ("text", "state", "text"),
        (None, "state", None),
    ],
)
def test_a_part_of_any_state_can_be_read(desk, state, part, value):
    async def talk(client, store):
        saved = await store.thread("t").save(state)
        whole = await read(client, address(saved))
        found = await read(client, f"{address(saved)}?part={part}")
        return whole["state"], found["value"]

    assert desk(talk) == (state, value)


@pytest.mark.parametrize(
    "state",
    [
        {"k" * 40_000: "v" * 40_000},
        {f"{'k' * 50}{n}": n for n in range(5000)},
        [["\x00" * 10_000] * 10] * 10,
        "💾" * 30_000,
    ],
    ids=["key", "keys", "nested", "wide"],
)
def test_a_state_that_is_too_large_is_shortened_and_names_its_parts(desk, state):
    async def talk(client, store):
        saved = await store.thread("t").save(state)
        return await read(client, address(saved))

    found = desk(talk)

    assert found["note"].startswith("Shortened.")
    assert found["parts"]


def test_what_json_has_no_word_for_is_described(desk):
    async def talk(client, store):
        saved = await store.thread("t").save({"n": 2**70, "bytes": b"\0" * 100_000})
        return await read(client, address(saved))

    assert desk(talk)["state"] == {"n": str(2**70), "bytes": "[100000 bytes]"}


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("holdfast://checkpoint/nothing", "has no checkpoint 'nothing'"),
        ("holdfast://checkpoint/", "Resources are read as holdfast://checkpoint/{id}"),
        ("holdfast://thread/x", "there is no resource 'holdfast://thread/x'"),
        ("file:///etc/passwd", "there is no resource"),
        ("holdfast://checkpoint/x?parts=y", "there is no resource"),
        ("holdfast://[", "there is no resource"),
        ("{}?part=note", "Did you mean 'notes'"),
        ("{}?part=notes&cursor=x", "cursor: it is not one that this tool gave"),
        ("{}?cursor=5", "cursor: it is not one that this tool gave"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused_with_the_reason(desk, uri, text):
    async def talk(client, store):
        saved = await store.thread("t").save({"notes": 1})
        with pytest.raises(MCPError) as refused:
            await read(client, uri.replace("{}", address(saved)))
        return refused.value.error

    error = desk(talk)

    assert error.code == -32602
    assert text in error.message


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "text"),
    [
        ("agent_load", {"agent": "x"}, "invalid_arguments", "Did you mean 'agent_id'?"),
        ("agent_load", {"agent_id": 7}, "invalid_arguments", "Id of the agent."),
        ("agent_list", {"limit": 501}, "invalid_arguments", "1 to 500"),
        ("agent_list", {"cursor": "x"}, "invalid_arguments", "or null to begin."),
        ("agent_lod", {}, "unknown_tool", "Did you mean 'agent_load'"),
        ("", {}, "unknown_tool", "The tools here are agent_save, agent_load"),
    ],
)
def test_a_wrong_call_is_answered_in_words(desk, tool, arguments, code, text):
    async def talk(client, store):
        return await client.call_tool(tool, arguments)

    answer = desk(talk)

    assert answer.is_error
    assert answer.structured_content["error"]["code"] == code
    assert text in answer.content[0].text


def test_a_store_that_was_closed_is_said_to_be(desk):
    async def talk(client, store):
        await store.close()
        return await client.call_tool("agent_list", {})

    answer = desk(talk)

    assert answer.is_error
    assert answer.structured_content["error"]["code"] == "closed"


def test_a_mistake_of_ours_is_a_result_and_in_the_log(desk, caplog):
    async def talk(client, store):
        return await client.call_tool("agent_save", {"agent_id": "a"})

    answer = desk(talk, clock=lambda: 1 // 0)

    assert answer.is_error
    assert answer.content[0].text.startswith("agent_save failed. Do not retry.")
    assert "ZeroDivisionError" not in str(answer)
    assert "ZeroDivisionError" in caplog.text


def test_a_websocket_is_closed():
    async def talk():
        sent = []

        async def send(message):
            sent.append(message)

        async with holdfast.open_async(":memory:") as store:
            app = http_app(store, token="a-token-that-is-long-enough")
            await app({"type": "websocket", "headers": []}, None, send)
        return sent

    assert asyncio.run(talk()) == [{"type": "websocket.close", "code": 1008}]
