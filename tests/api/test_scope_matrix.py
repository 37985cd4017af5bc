"""Every public call with the handle of one scope and what belongs to another.

Each call is made twice: beside the other scope, and where it never existed. Both must
answer alike, whatever the answer is, and the other scope must stay as it was.
"""

from __future__ import annotations

import dataclasses
import itertools
import shutil
from collections.abc import Mapping
from copy import deepcopy
from io import BytesIO
from tempfile import TemporaryDirectory

import msgspec
import pytest

import holdfast
from holdfast import HoldfastError, Page, Store, Stream, Thread
from holdfast.agents import Agent
from holdfast.recorder import Recorder
from holdfast.retention import Retention
from holdfast.testing import FakeClock, blocking
from holdfast.tools import TOOLS, Toolset
from support import databases, servers
from support.handles import Agents, Conversations, Documents
from support.snapshots import MemorySnapshot

KEY = bytes(range(32))
CALL = {"id": "call-b", "name": "look", "arguments": {"n": 1}}
# What differs where there are others, and tells only how much they do.
NUMBERS = {"seq", "changed", "family", "number", "thread_number", "cursor", "format"}
# What a receipt of an erasure has by chance, and its numbers of changes.
NUMBERS |= {"salt", "digest", "signature", "before", "after"}


class Ids:
    """Ids that begin with what is being built."""

    def __init__(self):
        self.begin("a")

    def begin(self, name):
        self.name, self.numbers = name, itertools.count()

    def __call__(self):
        return f"{self.name}-{next(self.numbers):06d}"


def fill(store, name):
    """Something of everything, all of whose names begin alike."""
    chat = store.thread(f"{name}-chat", owner=f"{name}-owner", agent=f"{name}-agent")
    chat.save({"text": f"{name} " * 300}, label=f"{name}-label", tags=[f"{name}-tag"])
    said = [{"role": "user", "content": f"{name} said"}] * 2
    chat.append(messages=said, files=MemorySnapshot({f"{name}.txt": name.encode()}))
    chat.record(f"{name}-key", name)
    chat.consume(f"{name}-grant")
    chat.fork(f"{name}-fork")
    store.agents.save(Agent(id=f"{name}-agent", name=name))
    talks = store.conversations
    talks.create(f"{name}-talk", owner=f"{name}-owner", agent=f"{name}-agent")
    talks.add(f"{name}-talk", {"role": "user", "content": f"{name} asked"})
    recorder = talks.recorder(f"{name}-loop", agent=f"{name}-agent")
    recorder.add({"role": "user", "content": f"{name} began"})
    recorder.save()
    store.documents.save(f"{name}/doc", f"{name} text")
    store.stream(f"{name}-log").append(f"{name} happened", key=name)
    store.agents.checkpoint(f"{name}-agent", f"{name}-named")


class Foreign:
    """Records, cursors and ids of the other scope that a caller has got hold of."""

    def __init__(self, store):
        chat = store.thread("b-chat")
        self.head, self.first = chat.head, chat.get("@~1")
        self.record = chat.about
        self.cursor = store.threads(limit=1).cursor
        self.last = store.changes().cursor
        self.match = store.search("said", limit=1).cursor
        self.talk = store.conversations.load("b-talk")
        self.agent = store.agents.load("b-agent")
        [self.pinned] = store.agents.checkpoints("b-agent")
        self.event = store.stream("b-log").last
        self.seal = store.seal()
        self.archive = BytesIO()
        store.export_to(self.archive)


def archived(store, **options):
    file = BytesIO()
    store.export_to(file, **options)
    return file.getvalue()


def lines(store, **options):
    file = BytesIO()
    store.export_lines(file, **options)
    return file.getvalue()


def read(archive):
    return BytesIO(archive.getvalue())


def copied(store):
    if not isinstance(store, Store):
        return None  # the async API copies into an AsyncStore
    with holdfast.open(":memory:") as other:
        return store.copy_to(other), [thread.id for thread in other.threads()]


def salvaged(store):
    with TemporaryDirectory() as folder:
        return store.salvage(f"{folder}/salvaged.db")


def autosaved(store):
    store.agents.autosave("b-agent", every=3600).stop()
    return store.agents.checkpoints("b-agent")


def together(a, other, **options):
    with a.transaction() as tx:
        tx.thread("a-chat").amend(values={"mine": 1})
        tx.thread(other).amend(values={"mine": 2}, **options)
    return tx.saved


def checked(a, head):
    with a.transaction() as tx:
        tx.thread("a-chat").amend(values={"mine": 1})
        tx.thread("b-chat").check(head)
    return tx.saved


def chats(a):
    """A thread of one's own, and one that only the other scope has."""
    return a.thread("a-chat"), a.thread("b-chat")


def loop(a):
    return a.conversations.recorder("b-loop")


OF_STORE = {
    "scope": lambda a, _: a.scope("B").threads(),
    "thread": lambda a, _: a.thread("b-chat").about,
    "stream": lambda a, _: a.stream("b-log").events(),
    "threads": lambda a, b: [
        a.threads(),
        a.threads(prefix="b"),
        a.threads(owner="b-owner"),
        a.threads(agent="b-agent"),
        a.threads(kind="pin"),
        a.threads(after=b.cursor),
    ],
    "delete": lambda a, _: [
        a.delete("b-chat"),
        a.delete(owner="b-owner"),
        a.delete(agent="b-agent"),
        a.delete(prefix="b"),
        a.delete(prefix="B\x1f"),
        a.delete(kind="conversation"),
    ],
    "get": [lambda a, b: a.get(b.head.id), lambda a, _: a.get("b-")],
    "load": [
        lambda a, b: a.load(b.head),
        lambda a, b: a.load(b.head.id),
        lambda a, b: a.load(b.pinned.id),
    ],
    "last_messages": lambda a, b: a.last_messages([b.head]),
    "search": lambda a, b: [
        a.search("said"),
        a.search("asked"),
        a.search("asked", conversation="b-talk"),
        a.search("said", owner="b-owner"),
        a.search("said", after=b.match),
    ],
    "prune": lambda a, _: [
        a.prune(Retention(last=1), thread="b-chat"),
        a.prune(Retention(last=1), owner="b-owner"),
        a.prune(Retention(last=1), prefix="b"),
        a.prune(Retention(last=1, labelled=False, tagged=False, forks=False)),
        a.prune(Retention(threads_in_all=0)),
    ],
    "erase": lambda a, _: [
        a.erase(thread="b-chat", forks=True),
        a.erase(owner="b-owner"),
        a.erase(agent="b-agent"),
        a.erase(agent="a-agent", forks=True),
    ],
    "verify_receipt": lambda a, _: a.verify_receipt("{}"),
    "compact": lambda a, _: a.compact(),
    "stats": lambda a, _: a.stats(),
    "heaviest": lambda a, _: a.heaviest(None),
    "verify": lambda a, b: [a.verify(), a.verify(quick=True), a.verify(seal=b.seal)],
    "seal": lambda a, _: len(a.seal()),
    "rotate_key": lambda a, _: a.rotate_key(KEY),
    "salvage": lambda a, _: salvaged(a),
    "copy_to": lambda a, _: copied(a),
    "export_to": [
        lambda a, _: archived(a),
        lambda a, _: archived(a, threads=["b-chat"]),
        lambda a, _: archived(a, owner="b-owner"),
    ],
    "export_lines": [
        lambda a, _: lines(a),
        lambda a, _: lines(a, threads=["b-chat"]),
    ],
    "import_archive": lambda a, b: [
        a.import_archive(read(b.archive)),
        a.thread("b-chat").load(),
    ],
    "backup": lambda a, _: a.backup("nowhere"),
    "transaction": [
        lambda a, _: together(a, "b-chat"),
        lambda a, b: together(a, "b-chat", expect=b.head),
        lambda a, _: together(a, "B\x1fb-chat"),
        lambda a, b: checked(a, b.head),
    ],
    "changes": lambda a, b: [a.changes(), a.changes(b.last), a.changes(b.head.seq - 1)],
}
OF_THREAD = {
    "save": [
        lambda a, b: chats(a)[0].save({}, expect=b.head),
        lambda a, b: chats(a)[1].save({}, expect=b.head.id),
        lambda a, b: chats(a)[1].save({}, id=b.head.id),
        lambda a, _: chats(a)[1].save({}),
    ],
    "append": lambda a, _: chats(a)[1].append(messages=["x"]),
    "extend": lambda a, b: chats(a)[1].extend({"messages": ["x"]}, expect=b.head),
    "amend": [
        lambda a, b: chats(a)[0].amend(values={"x": 1}, expect=b.head),
        lambda a, _: chats(a)[1].amend(lists={"messages": ["x"]}),
    ],
    "values": [
        lambda a, b: chats(a)[0].values("text", ref=b.head),
        lambda a, _: chats(a)[1].values(),
    ],
    "tail": [
        lambda a, b: chats(a)[0].tail("messages", 1, ref=b.head),
        lambda a, _: chats(a)[1].tail("messages", 1),
    ],
    "elements": [
        lambda a, b: chats(a)[0].elements("messages", ref=b.head),
        lambda a, _: chats(a)[1].elements("messages"),
    ],
    "load": [
        lambda a, b: chats(a)[0].load(b.head),
        lambda a, b: chats(a)[0].load(b.head.id),
        lambda a, _: chats(a)[1].load(),
    ],
    "head": lambda a, _: chats(a)[1].head,
    "step": lambda a, _: chats(a)[1].step,
    "about": lambda a, _: chats(a)[1].about,
    "get": [
        lambda a, b: chats(a)[0].get(b.first),
        lambda a, _: chats(a)[0].get("b-"),
        lambda a, _: chats(a)[0].get("label:b-label"),
        lambda a, _: chats(a)[0].get("tag:b-tag"),
    ],
    "history": [
        lambda a, b: chats(a)[0].history(before=b.head),
        lambda a, b: chats(a)[0].history(before=b.head.seq),
        lambda a, _: chats(a)[0].history(label="b-label"),
        lambda a, _: chats(a)[1].history(all=True),
    ],
    "count": lambda a, _: chats(a)[1].count(),
    "find": lambda a, _: [chats(a)[n].find(label="b-label") for n in (0, 1)],
    "diff": lambda a, b: chats(a)[0].diff(b.first, b.head),
    "blame": lambda a, b: chats(a)[0].blame("text", b.head),
    "files": [
        lambda a, b: chats(a)[0].files(b.head),
        lambda a, _: chats(a)[1].files(),
    ],
    "read_file": [
        lambda a, b: chats(a)[0].read_file("b.txt", b.head),
        lambda a, _: chats(a)[1].read_file("b.txt"),
    ],
    "read_files": lambda a, b: chats(a)[0].read_files(["b.txt"], b.head),
    "diff_files": [
        lambda a, b: chats(a)[0].diff_files(b.first, b.head),
        lambda a, b: chats(a)[0].diff_files(b.head),
    ],
    "blame_file": lambda a, b: chats(a)[0].blame_file("b.txt", b.head),
    "moves": lambda a, b: [chats(a)[1].moves(), chats(a)[0].moves(before=b.last)],
    "family": lambda a, _: chats(a)[1].family(),
    "tree": lambda a, b: [chats(a)[1].tree(), chats(a)[0].tree(before=b.last)],
    "fork": [
        lambda a, b: chats(a)[0].fork("new", b.head),
        lambda a, _: chats(a)[1].fork("new"),
        lambda a, _: chats(a)[0].fork("b-chat").load(),
    ],
    "explore": [
        lambda a, _: chats(a)[1].explore(lambda _: None, n=1),
        lambda a, _: str(chats(a)[0].explore(lambda _: None, n=1, name="b-key")),
    ],
    "merge": [
        lambda a, b: chats(a)[0].merge(b.head),
        lambda a, _: chats(a)[0].merge(chats(a)[1]),
        lambda a, _: chats(a)[1].merge(chats(a)[0], dry_run=True),
    ],
    "rewind": [
        lambda a, b: chats(a)[0].rewind(b.first),
        lambda a, b: chats(a)[0].rewind(b.first.id, hard=True),
    ],
    "undo": lambda a, _: chats(a)[1].undo(),
    "redo": lambda a, _: chats(a)[1].redo(),
    "label": lambda a, b: chats(a)[0].label("mine", b.head),
    "tag": lambda a, b: chats(a)[0].tag("mine", ref=b.head),
    "untag": lambda a, b: chats(a)[0].untag("b-tag", ref=b.first),
    "describe": lambda a, _: chats(a)[1].describe(owner="me"),
    "record": lambda a, b: chats(a)[0].record("b-key", 1, checkpoint=b.head),
    "record_all": lambda a, _: chats(a)[1].record_all({"b-key": 1}),
    "recorded": lambda a, b: [
        chats(a)[1].recorded("b-key"),
        chats(a)[0].recorded("b-key", checkpoint=b.head),
    ],
    "recorded_all": lambda a, _: [chats(a)[n].recorded_all("b-") for n in (0, 1)],
    "forget": lambda a, _: chats(a)[1].forget("b-key"),
    "journal": lambda a, b: [
        chats(a)[1].journal(),
        chats(a)[0].journal(checkpoint=b.head),
    ],
    "effects": lambda a, _: chats(a)[1].effects(),
    "consume": [
        lambda a, _: chats(a)[1].consume("b-grant"),
        lambda a, _: chats(a)[0].consume("b-grant"),
    ],
    "delete": [
        lambda a, b: chats(a)[0].delete(b.first),
        lambda a, _: chats(a)[1].delete(),
    ],
    "prune": lambda a, _: chats(a)[1].prune(Retention(last=1)),
}
OF_CONVERSATIONS = {
    "thread": lambda a, _: a.conversations.thread("b-talk").about,
    "create": lambda a, _: a.conversations.create("b-talk", owner="b-owner"),
    "get_or_create": lambda a, _: a.conversations.get_or_create("b-owner", "b-talk"),
    "add": lambda a, _: a.conversations.add("b-talk", {"role": "user", "content": "x"}),
    "save": lambda a, b: a.conversations.save(deepcopy(b.talk)),
    "update": lambda a, _: a.conversations.update("b-talk", title="mine"),
    "archive": lambda a, _: a.conversations.archive("b-talk"),
    "auto_title": lambda a, _: a.conversations.auto_title("b-talk"),
    "load": lambda a, _: a.conversations.load("b-talk"),
    "find": lambda a, _: a.conversations.find("b-talk"),
    "latest_safe": lambda a, _: a.conversations.latest_safe("b-talk"),
    "context_window": lambda a, _: a.conversations.context_window("b-talk", 5),
    "list": lambda a, b: [
        a.conversations.list(),
        a.conversations.list(owner="b-owner"),
        a.conversations.list(agent="b-agent"),
        a.conversations.list(after=b.cursor),
    ],
    "summaries": lambda a, _: a.conversations.summaries(),
    "search": lambda a, _: a.conversations.search("asked"),
    "recorder": lambda a, _: loop(a).messages,
    "delete": lambda a, _: a.conversations.delete("b-talk", owner="b-owner"),
    "prune": lambda a, _: a.conversations.prune(Retention(threads_in_all=0)),
}
OF_AGENTS = {
    "thread": lambda a, _: a.agents.thread("b-agent").about,
    "save": lambda a, b: a.agents.save(deepcopy(b.agent)),
    "load": lambda a, _: a.agents.load("b-agent"),
    "find": lambda a, _: a.agents.find("b-agent"),
    "list": lambda a, b: [a.agents.list(), a.agents.list(after=b.cursor)],
    "delete": lambda a, _: a.agents.delete("b-agent"),
    "checkpoint": lambda a, _: a.agents.checkpoint("b-agent"),
    "checkpoints": lambda a, b: a.agents.checkpoints("b-agent", before=b.last),
    "get_checkpoint": lambda a, b: a.agents.get_checkpoint(b.pinned.id),
    "load_checkpoint": [
        lambda a, b: a.agents.load_checkpoint("b-agent", b.pinned),
        lambda a, b: a.agents.load_checkpoint("a-agent", b.pinned.id),
        lambda a, _: a.agents.load_checkpoint("a-agent", "b-named"),
    ],
    "load_conversation": lambda a, b: a.agents.load_conversation(
        "b-agent", b.pinned, "b-talk"
    ),
    "restore": [
        lambda a, b: a.agents.restore("b-agent", b.pinned),
        lambda a, b: a.agents.restore("a-agent", b.pinned, dry_run=True),
    ],
    "delete_checkpoint": lambda a, b: a.agents.delete_checkpoint("a-agent", b.pinned),
    "autosave": lambda a, _: autosaved(a),
}
OF_DOCUMENTS = {
    "thread": lambda a, _: a.documents.thread("b/doc").about,
    "save": lambda a, b: a.documents.save("b/doc", "mine", expect=b.head),
    "load": lambda a, _: a.documents.load("b/doc"),
    "find": lambda a, _: a.documents.find("b/doc"),
    "list": lambda a, _: [a.documents.list(), a.documents.list("b", nested=True)],
    "history": lambda a, b: a.documents.history("b/doc", before=b.last),
    "delete": lambda a, _: a.documents.delete("b/doc"),
}
OF_STREAM = {
    "append": [
        lambda a, _: a.stream("b-log").append("mine", key="b"),
        lambda a, _: a.stream("a-log").append("mine", key="b"),
    ],
    "events": [
        lambda a, _: a.stream("b-log").events(),
        lambda a, b: a.stream("b-log").events(b.event),
    ],
    "wait": lambda a, _: a.stream("b-log").wait(timeout=0.0),
    "last": lambda a, _: a.stream("b-log").last,
    "trim": lambda a, _: a.stream("b-log").trim(last=0),
    "delete": lambda a, _: a.stream("b-log").delete(),
}
OF_RECORDER = {
    "add": lambda a, _: loop(a).add({"role": "user", "content": "x"}),
    "iteration": lambda a, _: loop(a).iteration(),
    "llm_response": lambda a, _: loop(a).llm_response(
        {"role": "assistant", "content": "x"}
    ),
    "tool_call": lambda a, _: loop(a).tool_call(CALL),
    "tool_result": lambda a, _: loop(a).tool_result("call-b", "x"),
    "save": lambda a, _: loop(a).save(),
    "resume": [
        lambda a, b: loop(a).resume(b.head),
        lambda a, b: a.conversations.recorder("a-loop").resume(b.head),
    ],
    "compensate": lambda a, _: loop(a).compensate(),
    "latest_safe": lambda a, _: loop(a).latest_safe(),
    "call": lambda a, _: loop(a).call(CALL, lambda n: n),
    "resolve": lambda a, _: loop(a).resolve(CALL, 1),
    "interrupted": lambda a, _: loop(a).interrupted(),
    "id": lambda a, _: loop(a).id,
    "messages": lambda a, _: loop(a).messages,
    "open_calls": lambda a, _: loop(a).open_calls,
    "left_behind": lambda a, _: loop(a).left_behind,
    "passed_over": lambda a, _: loop(a).passed_over,
    "iterations": lambda a, _: loop(a).iterations,
    "usage": lambda a, _: loop(a).usage,
    "metadata": lambda a, _: loop(a).metadata,
    "pending": lambda a, _: loop(a).pending,
    "repairs": lambda a, _: loop(a).repairs,
    "checkpoint": lambda a, _: loop(a).checkpoint,
}
ARGUMENTS = {
    "agent_id": "b-agent",
    "conversation_id": "b-talk",
    "checkpoint": "b-named",
    "checkpoint_id": "b-named",
    "query": "asked",
}


def called(tool):
    given = {
        n: v for n, v in ARGUMENTS.items() if n in tool.arguments.__struct_fields__
    }
    return lambda a, _: Toolset(a).call(tool.name, given)


MATRIX: dict[type, dict] = {
    Store: OF_STORE,
    Thread: OF_THREAD,
    Conversations: OF_CONVERSATIONS,
    Agents: OF_AGENTS,
    Documents: OF_DOCUMENTS,
    Stream: OF_STREAM,
    Recorder: OF_RECORDER,
}
# These say nothing about a store.
LEFT_OUT = {
    Store: {
        "close": "ends the handle",
        "using": "needs a connection of the caller's",
        "import_from": "reads a file of another program; saves as `save` does",
        "agents": "each of its calls is in the matrix",
        "conversations": "each of its calls is in the matrix",
        "documents": "each of its calls is in the matrix",
    },
    Agents: {"close": "ends what runs in the background"},
}
OF_TOOLS = {f"tools.{tool.name}": called(tool) for tool in TOOLS}
CALLS = OF_TOOLS | {
    f"{kind.__name__}.{name}.{number}": call
    for kind, calls in MATRIX.items()
    for name, given in calls.items()
    for number, call in enumerate(given if isinstance(given, list) else [given])
}


# A number means the same in both places as long as nothing was changed.
BY_NUMBER = {
    "Store.changes.0",
    "Store.threads.0",
    "Store.search.0",
    "Thread.history.1",
    "Thread.moves.0",
    "Thread.tree.0",
    "Conversations.list.0",
    "Agents.list.0",
    "Agents.checkpoints.0",
    "Documents.history.0",
}


def public(kind):
    found = {name for part in kind.__mro__ for name in vars(part)}
    return {name for name in found if not name.startswith("_")}


@pytest.mark.parametrize("kind", MATRIX, ids=lambda kind: kind.__name__)
def test_every_public_method_is_in_the_matrix(kind):
    assert public(kind) == {*MATRIX[kind], *LEFT_OUT.get(kind, ())}


# --- the two places -------------------------------------------------------------------


def outcome(call, a, foreign):
    """What a call gives or raises, without numbers that others use up."""
    try:
        return plain(call(a, foreign))
    except HoldfastError as error:
        return type(error), error.code, str(error)


def plain(value):
    if isinstance(value, msgspec.Struct):
        fields = {n: getattr(value, n) for n in value.__struct_fields__}
        return type(value), plain(fields)
    if dataclasses.is_dataclass(value):
        return type(value), plain(vars(value))
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items() if k not in NUMBERS}
    if isinstance(value, Page | list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | bytes | int | None) else type(value)


def seen(store):
    """All that a scope shows of itself."""
    return plain([store.changes(), store.threads(), archived(store)])


class Pair:
    """A scope beside another one, and the same scope where the other never was."""

    def __init__(self, open_store):
        self.ids, self.own_ids = Ids(), Ids()
        self.beside = open_store("beside", new_id=self.ids, clock=FakeClock())
        self.alone = open_store("alone", new_id=self.own_ids, clock=FakeClock())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.beside.close()
        self.alone.close()

    def fill(self):
        """Fill both stores; returns the objects of the other scope."""
        for store in (self.beside, self.alone):
            fill(store.scope("A"), "a")
        self.ids.begin("b")
        fill(self.beside.scope("B"), "b")
        return Foreign(self.beside.scope("B"))

    def compare(self, name, foreign):
        """Make a call in both."""
        self.ids.begin(name)
        self.own_ids.begin(name)
        call = CALLS[name]

        found = outcome(call, self.beside.scope("A"), foreign)

        assert found == outcome(call, self.alone.scope("A"), foreign), name


def opener(folder, **options):
    def open_store(name, **more):
        path = str(folder / f"{name}.db")
        return holdfast.open(path, durability="normal", **options, **more)

    return open_store


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Both places as files, which each call gets a copy of."""
    folder = tmp_path_factory.mktemp("made")
    with Pair(opener(folder)) as pair:
        foreign = pair.fill()
    return folder, foreign


@pytest.mark.parametrize("name", CALLS)
def test_a_call_finds_nothing_of_another_scope(name, made, tmp_path):
    source, foreign = made
    for file in source.iterdir():
        shutil.copy(file, tmp_path)
    with Pair(opener(tmp_path)) as pair:
        other = seen(pair.beside.scope("B"))
        pair.compare(name, foreign)
        assert seen(pair.beside.scope("B")) == other


def test_nor_does_it_in_an_encrypted_store(tmp_path):
    with Pair(opener(tmp_path, key=KEY)) as pair:
        # A seal is of one store: the other has another key.
        try_all(pair, without="Store.verify.0")


def test_nor_does_it_in_a_folder_by_the_async_api(tmp_path):
    def open_store(name, **options):
        return blocking(holdfast.open_async(f"dir:{tmp_path / name}", **options))

    with Pair(open_store) as pair:
        try_all(pair)


@pytest.mark.servers
def test_nor_does_it_on_postgresql():
    url = servers.shared(servers.NAMES[0])
    with databases.place(url) as one, databases.place(url) as other:
        places = {"beside": one, "alone": other}
        with Pair(lambda name, **rest: places[name].open("awaited", **rest)) as pair:
            try_all(pair)


def in_order(name):
    return name not in BY_NUMBER, [*CALLS].index(name)


def try_all(pair, without=None):
    """All calls one after the other: what one changes, it changes in both places."""
    foreign = pair.fill()
    other = seen(pair.beside.scope("B"))
    for name in sorted(CALLS.keys() - {without}, key=in_order):
        pair.compare(name, foreign)
    assert seen(pair.beside.scope("B")) == other
