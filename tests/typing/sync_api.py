"""What the sync API promises to type checkers; mypy and pyright read it, nothing runs.

Where a comment ignores an error, the checkers must find one.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from collections.abc import Mapping
from typing import Any, assert_type

import holdfast
from holdfast import (
    Agent,
    Blame,
    Change,
    Checkpoint,
    Conversation,
    Document,
    Message,
    Move,
    Page,
    Recorder,
    Store,
    Thread,
    ThreadRecord,
)
from holdfast.agents import AgentCheckpoint, Restored, RestorePreview
from holdfast.conversations import Summary
from holdfast.diff import Diff
from holdfast.messages import (
    AnthropicRequest,
    to_anthropic,
    to_openai_responses,
    to_plain,
)
from holdfast.operations import Context


class Plan:
    steps: list[str]


def opening() -> None:
    with holdfast.open("agent.db", durability="normal", cache_size=0) as store:
        assert_type(store, Store)
    holdfast.open("agent.db", durability="maybe")  # type: ignore[arg-type]
    holdfast.open("agent.db", durabilty="full")  # type: ignore[call-arg]


def saving(thread: Thread, head: Checkpoint) -> None:
    saved = thread.save(
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
    assert_type(thread.save([], expect=None), Checkpoint)
    assert_type(thread.append(messages=["hi"]), Checkpoint)
    assert_type(thread.extend({"messages": ["hi"]}, tags=["a"]), Checkpoint)
    thread.save({}, lable="first")  # type: ignore[call-arg]
    thread.save({}, label=1)  # type: ignore[arg-type]
    thread.extend({}, if_changed=True)  # type: ignore[call-arg]
    thread.append(messages=1)  # type: ignore[arg-type]


def reading(thread: Thread) -> None:
    assert_type(thread.load(), Any)
    assert_type(thread.load("@~1", type=Plan), Plan)
    assert_type(thread.head, Checkpoint | None)
    assert_type(thread.step, int)
    assert_type(thread.about, ThreadRecord | None)
    assert_type(thread.get("@12"), Checkpoint)
    assert_type(thread.history(5, order="oldest", all=True), Page[Checkpoint])
    assert_type(thread.find(tag="a"), Checkpoint | None)
    assert_type(thread.diff("@~1"), Diff)
    assert_type(thread.blame("messages[0]"), Blame)
    assert_type(thread.moves(), Page[Move])
    assert_type(thread.journal(), dict[str, Any])
    thread.history(before="@", ordr="oldest")  # type: ignore[call-arg]
    thread.history(order="random")  # type: ignore[arg-type]
    thread.load(1)  # type: ignore[call-overload]


def moving(thread: Thread) -> None:
    assert_type(thread.fork("b"), Thread)
    assert_type(thread.rewind("@~1", hard=True), Checkpoint)
    assert_type(thread.undo(), Checkpoint)
    assert_type(thread.tag("a", ref="@~1"), Checkpoint)
    assert_type(thread.delete(), int)


def stores(store: Store) -> None:
    assert_type(store.thread("chat", kind="chat", owner="ann"), Thread)
    assert_type(store.threads(prefix="a", limit=None), Page[ThreadRecord])
    assert_type(store.load("x", type=Plan), Plan)
    assert_type(store.changes(5, timeout=1.0), Page[Change])
    assert_type(store.export_lines("to.jsonl", shown="messages", heads=True), int)
    store.thread("chat", ower="ann")  # type: ignore[call-arg]
    store.threads(limt=1)  # type: ignore[call-arg]
    store.search("text", kinds=())  # type: ignore[call-arg]
    store.search("text", per="conversation")
    store.search("text", per="thread")  # type: ignore[arg-type]
    store.export_lines("to.jsonl", shown="all")  # type: ignore[arg-type]


def records(store: Store) -> None:
    assert_type(store.agents.load("a"), Agent)
    assert_type(store.agents.find("a"), Agent | None)
    assert_type(store.agents.checkpoint("a", keep=3), AgentCheckpoint)
    assert_type(store.agents.restore("a", "name"), Restored)
    preview = store.agents.restore("a", "name", dry_run=True)
    assert_type(preview, RestorePreview)
    chat = assert_type(store.conversations.create(title="t"), Conversation)
    assert_type(chat.to_openai(), list[Any])
    assert_type(to_openai_responses(chat.context_window(100)), list[Any])
    assert_type(to_anthropic(chat.messages), AnthropicRequest)
    assert_type(to_plain(chat.messages), list[Message])
    assert_type(store.conversations.add("c", Message.user("hi")), Checkpoint)
    assert_type(store.conversations.list(tag="t", limit=5), Page[Summary])
    assert_type(store.conversations.recorder("c", owner="ann"), Recorder)
    assert_type(store.documents.save("notes", "text"), Document)
    assert_type(store.documents.load("notes", type=dict[str, int]), Document)
    assert_type(store.documents.find("notes", type=Agent), Document | None)
    store.conversations.create(titel="t")  # type: ignore[call-arg]
    store.conversations.list(tags="t")  # type: ignore[call-arg]
    store.conversations.recorder("c", sav=None)  # type: ignore[call-arg]


def parts(store: Store) -> None:
    chat = store.thread("chat")
    assert_type(chat.amend(lists={"m": [1]}, values={"n": 1}), Checkpoint)
    assert_type(chat.values("n"), dict[str, Any])
    assert_type(chat.tail("m", 2), list[Any])
    assert_type(chat.elements("m", limit=2), Page[Any])
    assert_type(chat.recorded_all("a/"), dict[str, Any])
    chat.amend(lable="x")  # type: ignore[call-arg]
    with store.transaction() as tx:
        tx.thread("a", owner="ann").save({}, once={"id": 1})
        tx.thread("b").check(chat.get())
        tx.thread("b").save({}, lable="x")  # type: ignore[call-arg]
    assert_type(tx.saved, dict[str, Checkpoint])


async def length(context: Context, thread: str, *, at_most: int = 5) -> int:
    return min(len(thread), at_most)


async def count(context: Context, keys: Mapping[str, int]) -> str:
    return str(len(keys))


def operations(store: Store) -> None:
    runner = store.runner
    assert_type(runner.run(length, "chat"), int)
    assert_type(runner.save(length, "chat", at_most=1), int)
    assert_type(runner.run(count, {"a": 1}), str)
    runner.run(length, 5)  # type: ignore[arg-type]
    runner.run(length, "chat", most=1)  # type: ignore[call-arg]
    runner.save(length)  # type: ignore[call-arg]
