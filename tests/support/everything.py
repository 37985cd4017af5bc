"""A store with something of everything that can be stored, and all that a caller reads.

tests/fixtures/write.py makes stores with it, and tests read stores of earlier versions
by it: `content` says nothing of what a version did not have.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import holdfast
from holdfast import Agent, Attachment, Message, Retention

WORDS = "meadow harbour lantern copper"
LONG = " ".join(f"{n} {WORDS}" for n in range(270))  # more than one segment
VALUES = {
    "tuple": (1, (2, "x")),
    "bytes": b"\x00\xff",
    "large": 2**70,
    "floats": [float("nan"), float("-inf"), 0.1],
    "by number": {1: "one", (2, 3): "two"},
    "sets": [{1}, frozenset({2})],
    "times": [
        dt.datetime(2026, 11, 19, 8, 30, tzinfo=dt.UTC),
        dt.date(2026, 11, 19),
        dt.time(8, 30),
        dt.timedelta(days=1, seconds=2),
    ],
    "decimal": Decimal("1.50"),
    "uuid": UUID(int=7),
    "text": 'émoji 🙂 "quoted"\n\u2028',
    "nothing": None,
    "nested": {"$hf.tuple": [1], "deep": [[[{}]]]},
}


class Source:
    """Times and ids that come out the same in every store of one version."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000
        self.last = 0

    def time(self) -> int:
        return self.now

    def id(self) -> str:
        self.last += 1
        return f"id-{self.last}"

    def options(self) -> dict[str, Any]:
        return {"clock": self.time, "new_id": self.id}


class Killed(BaseException):
    """Ends a tool in the middle, as the end of its process does."""


def say(n: int, size: int = 1) -> dict[str, object]:
    return {"role": "user", "n": n, "content": f"message {n} " + WORDS * size}


def build(store: Any, source: Source, folder: Path) -> None:
    """Fill a new store; ``folder`` is for the files of a workspace."""
    for part in PARTS:
        part(store)
        source.now += 1_000_000
    build_files(store, folder)
    build_effects(store, source)
    assert store.search("lyon")


def build_little(store: Any, source: Source) -> None:
    """Fill a new store with some of it."""
    for part in PARTS[:2]:
        part(store)
        source.now += 1_000_000
    assert store.search("lyon")


def build_chat(store: Any) -> None:
    chat = store.thread("chat", owner="ann", agent="planner", metadata={"team": 7})
    chat.save({"messages": [say(0, 9), *map(say, range(1, 30))], "prompt": LONG})
    chat.append(messages=list(map(say, range(30, 33))))
    state = {**chat.load(), "budget": 4, "prompt": f"{LONG}!"}
    options = {"label": "kept", "tags": ["good", "seen"], "metadata": {"cost": 0.5}}
    chat.save(state, journal={"call": {"ok": (1, 2)}}, **options)
    side = chat.fork("chat/side", at="label:kept")
    side.append(messages=[say(900), say(901)])
    chat.append(messages=[say(33)])
    state["messages"] = [*chat.load()["messages"][:20], say(77)]
    chat.save(state)
    chat.rewind("label:kept")
    chat.undo()
    chat.redo()
    chat.append(messages=[say(34)])
    chat.tag("later", ref="@2")
    chat.untag("seen", ref="label:kept")
    chat.label("first", "@1")
    chat.record("note", {"paid": True})
    kept = chat.get("label:kept")
    chat.record_all({"one": 1, "two": [2] * 200}, checkpoint=kept.id)
    chat.describe(metadata={"team": 8})
    assert chat.consume("approval:42")


def build_long(store: Any) -> None:
    long = store.thread("long", owner="ann")
    for n in range(150):
        long.append(messages=[say(n)])
        if n == 100:
            long.tag("kept")
            long.fork("long/fork").append(messages=[say(1000)])
    two = Retention(last=2)
    assert long.prune(two).checkpoints


def build_others(store: Any) -> None:
    store.thread("values").save(VALUES)
    store.thread("values").save({**VALUES, "nothing": 0})
    value = store.thread("value", metadata={"why": "no mapping"})
    value.save("a single value " * 40)
    value.save(["another", None])
    store.thread("only a journal").record("key", "value")
    for name in ("gone", "erased"):
        store.thread(name, owner="bob").save({"secret": name})
    store.delete("gone")
    store.erase(thread="erased")


def build_agents(store: Any) -> None:
    agent = Agent(id="planner", name="Planner", type="travel", state={"step": 1})
    agent.system_prompt = "You plan. " * 40
    store.agents.save(agent)
    talks = store.conversations
    file = Attachment(id="map", name="map.txt", content="a map " * 400)
    messages = [
        Message.system("Be brief.", id="m1", at=1),
        Message.user("A train to Lyon, please", id="m2", at=1, attachments=[file]),
        Message.assistant("To Lyon at noon", id="m3", at=1, metadata={"score": 0.9}),
    ]
    about = {"title": "To Lyon", "tags": ["rail"], "context": {"budget": 90}}
    talks.create("trip-7", agent="planner", owner="ann", messages=messages, **about)
    hi = Message.user("Hi", id="m1", at=1)
    talks.create("trip-8", agent="planner", owner="bob", messages=[hi])
    store.documents.save("notes/rust", "Ownership. " * 50, metadata={"tag": "lang"})
    store.documents.save("notes/rust", "Borrowing. " * 50)
    store.agents.checkpoint("planner", "before-booking", description="nothing booked")
    answer = Message.assistant("Booked", id="m5", at=1)
    talks.add("trip-7", Message.user("Book it", id="m4", at=1), answer)
    talks.delete("trip-8")
    agent.state = {"step": 2, "booked": True}
    store.agents.save(agent)
    store.agents.checkpoint("planner", "booked")
    talks.update("trip-7", summary="A train was booked", archived=True)


def build_stream(store: Any) -> None:
    log = store.stream("task 7", owner="ann", metadata={"of": "chat"})
    log.append({"status": "begun"})
    log.append({"status": "working", "text": LONG[:500]}, key="step 1")
    log.append({"status": "done"})


def build_scope(store: Any) -> None:
    with store.transaction() as changes:
        changes.thread("together").save({"n": 1})
        changes.thread("apart").save({"n": 2})
    store.thread("apart").amend(values={"n": 3})
    store.thread("apart").record("forgotten", 1)
    store.thread("apart").forget("forgotten")
    scope = store.scope("acme")
    scope.thread("chat", owner="zoe").save({"messages": [say(1)], "tenant": "acme"})
    only = Message.user("Only for acme", id="m1", at=1)
    scope.conversations.create("trip-7", messages=[only])


def build_branches(store: Any) -> None:
    ours = store.thread("merged")
    ours.save({"plan": "none", "a": 1, "b": 1})
    theirs = ours.fork("merged/theirs")
    theirs.save({**theirs.load(), "b": 2})
    ours.save({**ours.load(), "a": 2})
    ours.merge(theirs)

    def propose(branch: Any) -> None:
        branch.thread.save({"plan": branch.number})

    tried = store.thread("explored")
    tried.save({"plan": None})
    found = tried.explore(propose, n=2, at_once=1, score=lambda branch: branch.number)
    found.adopt()


PARTS = [
    build_others,
    build_agents,
    build_chat,
    build_long,
    build_stream,
    build_scope,
    build_branches,
]


def build_files(store: Any, folder: Path) -> None:
    workspace = holdfast.Workspace(folder)
    files = store.thread("files", owner="ann")
    (folder / "report.md").write_text("the report\n" * 20)
    (folder / "large.txt").write_text("\n".join(LONG.split(" ")))
    files.save({"task": "write"}, files=workspace)
    (folder / "report.md").write_text("the second report\n" * 20)
    (folder / "run.sh").write_text("echo ok\n")
    (folder / "run.sh").chmod(0o755)
    files.save({"task": "edit"}, files=workspace)
    files.append(messages=[say(1)])


def tools() -> list[Any]:
    @holdfast.repeatable
    def look_up(order: int) -> object:
        return {"order": order, "paid": 120}

    @holdfast.once(key=["order"])
    def refund(order: int) -> str:
        return f"order {order} is refunded"

    @holdfast.once
    def send_mail(order: int) -> None:
        raise Killed

    return [look_up, refund, send_mail]


def ask(*calls: tuple[str, int]) -> dict[str, Any]:
    found = [
        {
            "id": f"{tool}-{order}",
            "type": "function",
            "function": {"name": tool, "arguments": f'{{"order": {order}}}'},
        }
        for tool, order in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": found}


def build_effects(store: Any, source: Source) -> None:
    """A loop whose process ends in the middle of a call."""
    run = store.conversations.recorder("refunds", tools=tools(), owner="ann")
    run.add({"role": "user", "content": "Please refund the order 4812"})
    for calls in ([("look_up", 1), ("refund", 1)], [("refund", 2), ("send_mail", 1)]):
        source.now += 1_000_000
        run.iteration()
        run.llm_response(ask(*calls))
        for call in run.open_calls:
            try:
                run.tool_result(call, run.call(call))
            except Killed:
                return


# --- reading --------------------------------------------------------------------------


def content(store: Any) -> dict[str, Any]:
    """All that a caller can read, but for `changes_of`."""
    found = {
        "threads": threads_of(store),
        "agents": {agent.id: agent_of(store, agent) for agent in store.agents.list()},
        "conversations": {
            summary.id: conversation_of(store.conversations.load(summary.id))
            for summary in store.conversations.list(limit=None)
        },
        "documents": {
            name: document_of(store, name)
            for name in (document.name for document in store.documents.list())
        },
        "found": sorted(
            [match.conversation, match.position, match.snippet]
            for word in ("lyon", "ownership", "acme")
            for match in store.search(word)
        ),
    }
    if journal := store.thread("only a journal").journal():
        found["only a journal"] = journal
    if inside := threads_of(store.scope("acme")):
        found["scope"] = inside
    return found


def changes_of(store: Any) -> str:
    """A digest of all changes with their numbers, which an archive does not keep."""
    changes = store.changes(limit=100_000)
    lines = [f"{c.seq} {c.thread} {c.kind} {c.subject} {c.at}" for c in changes]
    return f"{len(lines)} {digest(repr(lines).encode())}"


def threads_of(store: Any) -> dict[str, Any]:
    records = [*store.threads(limit=None), *store.threads(kind="pin", limit=None)]
    return {r.id: thread_of(store, r) for r in sorted(records, key=lambda r: r.id)}


def thread_of(store: Any, record: Any) -> dict[str, Any]:
    thread = store.thread(record.id)
    checkpoints = thread.history(None, all=True)
    effects = thread.effects()
    found = {
        "about": [record.kind, record.owner, record.agent, repr(record.metadata)],
        "times": [record.created_at, record.updated_at],
        "forked_from": record.forked_from,
        "state": short(thread.load()) if thread.head else None,
        "checkpoints": [checkpoint_of(store, c) for c in checkpoints],
        # An exploration keeps how long it really took.
        "journal": {
            key: short(value)
            for key, value in thread.journal().items()
            if not key.startswith("explore")
        },
        "moves": [
            [move.kind, move.source, move.target, move.moved_at]
            for move in thread.moves(None)
        ],
        "effects": [[e.tool, repr(e.arguments), e.status, e.result] for e in effects],
    }
    if record.kind == "stream":
        events = store.stream(record.id).events()
        found["events"] = [[e.cursor, short(e.value), e.at, e.key] for e in events]
    files = {c.id: files_of(thread, c) for c in checkpoints}
    found["files"] = {id_: tree for id_, tree in files.items() if tree}
    return {name: value for name, value in found.items() if value}


def files_of(thread: Any, checkpoint: Any) -> dict[str, Any]:
    try:
        tree = thread.files(checkpoint)
    except holdfast.NotFound:
        return {}
    return {
        path: [tree[path].mode, digest(thread.read_file(path, checkpoint))]
        for path in tree
    }


def checkpoint_of(store: Any, checkpoint: Any) -> list[Any]:
    c = checkpoint
    return [
        f"{c.id} {c.step} {c.saved_at} {c.kind} {c.label} {','.join(c.tags)} {c.size}",
        f"{c.sha256.hex()} {digest(repr(store.load(c)).encode())}",
        repr(c.metadata),
    ]


def short(value: object) -> str:
    """A value as Python writes it; of a long one the beginning, and its digest."""
    text = repr(value)
    if len(text) <= 120:
        return text
    return f"{text[:60]} … {len(text)} {digest(text.encode())}"


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:16]


def agent_of(store: Any, agent: Any) -> dict[str, Any]:
    checkpoints = store.agents.checkpoints(agent.id)
    return {
        "fields": [agent.name, agent.type, repr(agent.state), agent.version],
        "system_prompt": short(agent.system_prompt),
        "checkpoints": [
            [c.name, c.description, c.conversations, c.messages] for c in checkpoints
        ],
        "then": {
            c.name: repr(store.agents.load_checkpoint(agent.id, c.name).agent.state)
            for c in checkpoints
        },
    }


def document_of(store: Any, name: str) -> list[Any]:
    versions = [store.documents.load(name, c) for c in store.documents.history(name)]
    return [[repr(v.metadata), v.version, short(v.content)] for v in versions]


def conversation_of(talk: Any) -> dict[str, Any]:
    return {
        "about": [talk.agent, talk.owner, talk.title, talk.summary, talk.archived],
        "more": [talk.tags, repr(talk.context), repr(talk.metadata)],
        "messages": [message_of(message) for message in talk.messages],
    }


def message_of(message: Any) -> list[Any]:
    if isinstance(message, dict):
        return [repr(message)]
    files = [[a.name, short(a.content)] for a in message.attachments]
    calls = repr(message.tool_calls) if message.tool_calls else None
    return [message.role, message.content, calls, files, repr(message.metadata)]
