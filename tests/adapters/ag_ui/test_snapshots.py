"""Snapshots of AG-UI threads: the store's contract, and a real endpoint."""

import asyncio
import copy
import json

import httpx
import pytest
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    ResponseStream,
)
from agent_framework_ag_ui import (
    AGUIThreadSnapshot,
    AGUIThreadSnapshotStore,
    InMemoryAGUIThreadSnapshotStore,
    add_agent_framework_fastapi_endpoint,
)
from fastapi import FastAPI

import holdfast
from holdfast.adapters.ag_ui import HoldfastThreadSnapshotStore
from holdfast.cli import main

NAMES = ["a", "a/b", "a%2Fb", "ü", " ", "a:b", "\0", "x" * 700]


def snapshot(*texts, **fields):
    messages = [{"id": t, "role": "user", "content": t} for t in texts]
    return AGUIThreadSnapshot(messages=messages, **fields)


def opened(place):
    address, options = place
    return holdfast.open(address, **options)


def test_a_snapshot_is_saved_replaced_and_deleted_on_every_backend(place):
    async def body(kept):
        key = {"scope": "ann", "thread_id": "t"}
        assert isinstance(kept, AGUIThreadSnapshotStore)
        assert await kept.get(**key) is None
        first = snapshot("hi", state={"n": 1}, interrupt=[{"id": "i"}])
        given = copy.deepcopy(first)
        await kept.save(**key, snapshot=given)
        given.messages.append({"later": True})
        assert await kept.get(**key) == first
        second = snapshot("hi", "there", session_state={"a": {"b": [1, None]}})
        await kept.save(**key, snapshot=second)
        (await kept.get(**key)).messages.clear()
        assert await kept.get(**key) == second

        assert await kept.delete(**key)
        assert not await kept.delete(**key)
        assert await kept.get(**key) is None
        await kept.save(**key, snapshot=first)
        assert await kept.get(**key) == first

    asyncio.run(body(InMemoryAGUIThreadSnapshotStore()))
    with opened(place) as store:
        asyncio.run(body(HoldfastThreadSnapshotStore(store)))


def test_scopes_and_threads_of_any_name_are_kept_apart():
    async def body(kept):
        pairs = [(scope, name) for scope in NAMES for name in NAMES]
        for scope, name in pairs:
            given = snapshot(f"{scope} {name}")
            await kept.save(scope=scope, thread_id=name, snapshot=given)
        await kept.clear(scope="a")
        for scope, name in pairs:
            found = await kept.get(scope=scope, thread_id=name)
            assert found == (None if scope == "a" else snapshot(f"{scope} {name}"))
        await kept.clear()
        assert await kept.get(scope="a/b", thread_id="a") is None
        for wrong, error in (("", ValueError), (3, TypeError)):
            with pytest.raises(error):
                await kept.get(scope=wrong, thread_id="t")
            with pytest.raises(error):
                await kept.get(scope="t", thread_id=wrong)

    with holdfast.open(":memory:") as store:
        store.thread("ag-ui:notes").save({})
        asyncio.run(body(HoldfastThreadSnapshotStore(store)))
        assert [thread.id for thread in store.threads()] == ["ag-ui:notes"]


def test_each_snapshot_is_a_checkpoint_that_costs_what_is_new():
    async def body(kept):
        texts = ["x" * 2_000 + str(n) for n in range(40)]
        for count in range(1, 41):
            given = snapshot(*texts[:count], state={"count": count})
            await kept.save(scope="ann", thread_id="t", snapshot=given)
            await kept.save(scope="ann", thread_id="t", snapshot=given)

    with holdfast.open(":memory:") as store:
        kept = HoldfastThreadSnapshotStore(store)
        asyncio.run(body(kept))
        thread = store.thread("ag-ui:ann/t")
        assert (thread.step, thread.about.owner) == (40, "ann")
        assert store.stats().stored_bytes < 1.1 * thread.head.size
        thread.rewind("@2")
        found = asyncio.run(kept.get(scope="ann", thread_id="t"))
        assert (len(found.messages), found.state) == (2, {"count": 2})


def test_two_workers_that_save_at_once_both_stay_in_the_history(place):
    async def body(kept):
        async def save(worker):
            for number in range(10):
                given = snapshot(f"{worker}{number}")
                await kept.save(scope="s", thread_id="t", snapshot=given)

        await asyncio.gather(save("x"), save("y"))

    with opened(place) as store:
        asyncio.run(body(HoldfastThreadSnapshotStore(store)))
        thread = store.thread("ag-ui:s/t")
        line = [thread.load(one)["messages"][0]["id"] for one in thread.history()]
        assert len(line) == 20
        assert {*line} == {f"{worker}{n}" for worker in "xy" for n in range(10)}


# --- a real endpoint ------------------------------------------------------------------


class ScriptedClient(BaseChatClient):
    """Answers with the number of messages that it was shown."""

    def _inner_get_response(self, *, messages, stream=False, **_):
        async def updates():
            content = Content.from_text(f"seen {len(messages)}")
            yield ChatResponseUpdate(role="assistant", contents=[content])

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates)


def ask(store, text, run):
    """What the endpoint streams, in an application of its own."""
    app = FastAPI()
    add_agent_framework_fastapi_endpoint(
        app,
        Agent(client=ScriptedClient(), name="ann"),
        "/chat",
        snapshot_store=HoldfastThreadSnapshotStore(store),
        snapshot_scope_resolver=lambda _request: "user-1",
    )
    messages = [{"id": run, "role": "user", "content": text}] if text else []
    asked = {"threadId": "t1", "runId": run, "messages": messages}
    streamed = asyncio.run(posted(app, asked))
    lines = [line for line in streamed.splitlines() if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


async def posted(app, asked):
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://t") as client:
        return (await client.post("/chat", json=asked)).text


def test_an_interface_gets_its_thread_back_from_a_new_process(tmp_path, capsys):
    path = str(tmp_path / "agents.db")
    for run, text in (("r1", "hello"), ("r2", "again")):
        with holdfast.open(path) as store:
            ask(store, text, run)

    with holdfast.open(path) as store:
        events = ask(store, None, "r3")

    [shown] = [one for one in events if one["type"] == "MESSAGES_SNAPSHOT"]
    said = [message["content"] for message in shown["messages"]]
    assert said == ["hello", "seen 1", "again", "seen 3"]
    assert main(["--store", path, "--no-pager", "log", "ag-ui:user-1/t1"]) == 0
    assert "assistant: seen 3" in capsys.readouterr().out
    assert main(["--store", path, "search", "again"]) == 0
    assert "again" in capsys.readouterr().out
