"""What the async API promises to type checkers; mypy and pyright read it, nothing runs.

Where a comment ignores an error, the checkers must find one.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from collections.abc import Mapping
from typing import Any, assert_type

import holdfast
from holdfast import (
    Agent,
    AsyncRecorder,
    AsyncStore,
    AsyncThread,
    Blame,
    Change,
    Checkpoint,
    Conversation,
    Document,
    Message,
    Move,
    Page,
    ThreadRecord,
)
from holdfast.agents import AgentCheckpoint, Restored, RestorePreview
from holdfast.conversations import Summary
from holdfast.diff import Diff
from holdfast.operations import Context


class Plan:
    steps: list[str]


async def opening() -> None:
    async with holdfast.open_async(
        "agent.db", durability="normal", cache_size=0
    ) as store:
        assert_type(store, AsyncStore)
    holdfast.open_async("agent.db", durability="maybe")  # type: ignore[arg-type]
    holdfast.open_async("agent.db", durabilty="full")  # type: ignore[call-arg]


async def saving(thread: AsyncThread, head: Checkpoint) -> None:
    saved = await thread.save(
        {"n": 1},
        label="first",
        tags=["a"],
        metadata={"k": 1},
        kind="note",
        id="x",
        expect=head,
        journal={"cost": 1},
        if_changed=True,
    )
    assert_type(saved, Checkpoint)
    assert_type(await thread.save([], expect=None), Checkpoint)
    assert_type(await thread.append(messages=["hi"]), Checkpoint)
    assert_type(await thread.extend({"messages": ["hi"]}, tags=["a"]), Checkpoint)
    await thread.save({}, lable="first")  # type: ignore[call-arg]
    await thread.save({}, label=1)  # type: ignore[arg-type]
    await thread.extend({}, if_changed=True)  # type: ignore[call-arg]
    await thread.append(messages=1)  # type: ignore[arg-type]


async def reading(thread: AsyncThread) -> None:
    assert_type(await thread.load(), Any)
    assert_type(await thread.load("@~1", type=Plan), Plan)
    assert_type(await thread.head, Checkpoint | None)
    assert_type(await thread.step, int)
    assert_type(await thread.about, ThreadRecord | None)
    assert_type(await thread.get("@12"), Checkpoint)
    assert_type(await thread.history(5, order="oldest", all=True), Page[Checkpoint])
    assert_type(await thread.find(tag="a"), Checkpoint | None)
    assert_type(await thread.diff("@~1"), Diff)
    assert_type(await thread.blame("messages[0]"), Blame)
    assert_type(await thread.moves(), Page[Move])
    assert_type(await thread.journal(), dict[str, Any])
    await thread.history(before="@", ordr="oldest")  # type: ignore[call-arg]
    await thread.history(order="random")  # type: ignore[arg-type]
    await thread.load(1)  # type: ignore[call-overload]


async def moving(thread: AsyncThread) -> None:
    assert_type(await thread.fork("b"), AsyncThread)
    assert_type(await thread.rewind("@~1", hard=True), Checkpoint)
    assert_type(await thread.undo(), Checkpoint)
    assert_type(await thread.tag("a", ref="@~1"), Checkpoint)
    assert_type(await thread.delete(), int)


async def stores(store: AsyncStore) -> None:
    assert_type(store.thread("chat", kind="chat", owner="ann"), AsyncThread)
    assert_type(await store.threads(prefix="a", limit=None), Page[ThreadRecord])
    assert_type(await store.load("x", type=Plan), Plan)
    assert_type(await store.changes(5, timeout=1.0), Page[Change])
    assert_type(await store.export_lines("to.jsonl", shown="messages", heads=True), int)
    store.thread("chat", ower="ann")  # type: ignore[call-arg]
    await store.threads(limt=1)  # type: ignore[call-arg]
    await store.search("text", kinds=())  # type: ignore[call-arg]
    await store.search("text", per="conversation")
    await store.search("text", per="thread")  # type: ignore[arg-type]
    await store.export_lines("to.jsonl", shown="all")  # type: ignore[arg-type]


async def records(store: AsyncStore) -> None:
    assert_type(await store.agents.load("a"), Agent)
    assert_type(await store.agents.find("a"), Agent | None)
    assert_type(await store.agents.checkpoint("a", keep=3), AgentCheckpoint)
    assert_type(await store.agents.restore("a", "name"), Restored)
    preview = await store.agents.restore("a", "name", dry_run=True)
    assert_type(preview, RestorePreview)
    assert_type(await store.conversations.create(title="t"), Conversation)
    assert_type(await store.conversations.add("c", Message.user("hi")), Checkpoint)
    assert_type(await store.conversations.list(tag="t", limit=5), Page[Summary])
    assert_type(await store.conversations.recorder("c", owner="ann"), AsyncRecorder)
    assert_type(await store.documents.save("notes", "text"), Document)
    assert_type(await store.documents.load("notes", type=dict[str, int]), Document)
    assert_type(await store.documents.find("notes", type=Agent), Document | None)
    await store.conversations.create(titel="t")  # type: ignore[call-arg]
    await store.conversations.list(tags="t")  # type: ignore[call-arg]
    await store.conversations.recorder("c", sav=None)  # type: ignore[call-arg]


async def parts(store: AsyncStore) -> None:
    chat = store.thread("chat")
    assert_type(await chat.amend(lists={"m": [1]}, values={"n": 1}), Checkpoint)
    assert_type(await chat.values("n"), dict[str, Any])
    assert_type(await chat.tail("m", 2), list[Any])
    assert_type(await chat.elements("m", limit=2), Page[Any])
    assert_type(await chat.recorded_all("a/"), dict[str, Any])
    await chat.amend(lable="x")  # type: ignore[call-arg]
    async with store.transaction() as tx:
        tx.thread("a", owner="ann").save({}, once={"id": 1})
        tx.thread("b").check(await chat.get())
        tx.thread("b").save({}, lable="x")  # type: ignore[call-arg]
    assert_type(tx.saved, dict[str, Checkpoint])


async def length(context: Context, thread: str, *, at_most: int = 5) -> int:
    return min(len(thread), at_most)


async def count(context: Context, keys: Mapping[str, int]) -> str:
    return str(len(keys))


async def operations(store: AsyncStore) -> None:
    runner = store.runner
    assert_type(await runner.run(length, "chat"), int)
    assert_type(await runner.save(length, "chat", at_most=1), int)
    assert_type(await runner.run(count, {"a": 1}), str)
    await runner.run(length, 5)  # type: ignore[arg-type]
    await runner.run(length, "chat", most=1)  # type: ignore[call-arg]
    await runner.save(length)  # type: ignore[call-arg]
    await runner.save(count, {"a": 1})  # type: ignore[type-var]
