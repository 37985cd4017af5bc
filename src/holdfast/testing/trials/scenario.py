"""A store with something of everything, each call that changes it, and a full dump.

Times and ids come from counters, so that the same call on the same file gives the same
store to the last byte of every record.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from typing import Literal, TypeAlias

import holdfast
from holdfast import Agent, Attachment, HoldfastError, Message, Retention, Store
from holdfast._api.options import OpenOptions
from holdfast.testing.faults import FaultyDisk

FILE_PLACE = "store.db"
FOLDER_PLACE = "dir:store"

Durability: TypeAlias = Literal["full", "normal"]
Step: TypeAlias = Callable[[Store], object]


class Counter:
    """Times and ids that come out the same in every run."""

    def __init__(self, name: str, start: int) -> None:
        self.name, self.start, self.value = name, start, start

    def reset(self) -> None:
        self.value = self.start

    def time(self) -> int:
        self.value += 1
        return self.value

    def id(self) -> str:
        self.value += 1
        return f"{self.name}-{self.value}"


class Source:
    """A clock and a source of ids that can be set back together."""

    def __init__(self, name: str, start: int) -> None:
        self.times, self.ids = Counter(name, start), Counter(name, 0)

    def reset(self) -> None:
        self.times.reset()
        self.ids.reset()

    def options(self, durability: Durability = "full") -> OpenOptions:
        return {
            "clock": self.times.time,
            "new_id": self.ids.id,
            "cache_size": 1 << 20,
            "durability": durability,
        }


def messages(first: int, count: int, size: int = 80) -> list[dict[str, object]]:
    return [
        {"role": "user", "n": n, "content": f"{n}:" + "x" * size}
        for n in range(first, first + count)
    ]


def _for_building(source: Source) -> OpenOptions:
    return {**source.options("normal"), "make_folders": True}


def build(path: str) -> None:
    """Make the store that every call starts from."""
    source = Source("built", 1_000_000)
    with holdfast.open(path, **_for_building(source)) as store:
        main = store.thread("main", owner="ann", metadata={"team": 7})
        main.save({"messages": messages(0, 40), "budget": 5}, id="first")
        main.append(messages=messages(40, 5))
        main.save({**main.load(), "budget": 4}, id="second", label="kept", tags=["t"])
        main.append(messages=messages(45, 5))
        main.extend({"messages": messages(50, 5)}, id="third", journal={"call": "ok"})
        side = main.fork("side", at="second")
        side.append(messages=messages(900, 5))
        main.rewind("second")
        main.append(messages=messages(60, 5))
        main.record("effect", {"paid": True})
        other = store.thread("other")
        other.save("a single value" * 40, id="other-1")
        other.save("another single value" * 40, metadata={"why": "test"})


def said(n: int, *attachments: Attachment) -> Message:
    """A message that is the same in every run."""
    content = f"{n}:" + "y" * 200
    return Message.user(content, id=f"m{n}", at=n, attachments=list(attachments))


def build_agents(path: str) -> None:
    """Make the store that every call on agents and their like starts from."""
    source = Source("built", 1_000_000)
    file = Attachment(id="file", content="z" * 3000)
    with holdfast.open(path, **_for_building(source)) as store:
        store.agents.save(Agent(id="scout", state={"text": "s" * 500}))
        store.agents.save(Agent(id="other"))
        talks = store.conversations
        for name in ("grown", "gone", "remade", "same"):
            talks.create(name, agent="scout", owner="ann", messages=[said(1)])
            talks.add(name, said(2, file))
        talks.create("loose", messages=[said(3)])
        store.documents.save("notes/a", "text " * 100, metadata={"k": 1})
        store.agents.checkpoint("scout", "early", id="early")
        talks.add("grown", said(4))
        store.agents.checkpoint("scout", "pinned", id="pinned")
        # A restore then has to rewind, revive, remove and replace.
        talks.add("grown", said(5))
        talks.delete("gone", "remade")
        talks.create("remade", agent="scout", owner="bob", messages=[said(6)])
        talks.create("late", agent="scout", messages=[said(7)])


def _first_save(store: Store) -> None:
    store.thread("new", owner="bob").save({"messages": messages(0, 30)}, id="new-1")


def _save(store: Store) -> None:
    state = {"messages": [*messages(0, 50), *messages(70, 20)], "budget": 3}
    store.thread("main").save(state, id="saved", label="l", journal={"a": 1, "b": 2})


def _append(store: Store) -> None:
    store.thread("main").extend({"messages": messages(80, 3)}, id="appended")


def _fork(store: Store) -> None:
    store.thread("main").fork("forked", at="third")


def _rewind(store: Store) -> None:
    store.thread("main").rewind("first")


def _hard_rewind(store: Store) -> None:
    store.thread("main").rewind("first", hard=True)


def _undo(store: Store) -> None:
    store.thread("main").undo()


def _label(store: Store) -> None:
    store.thread("main").label("renamed", "third")


def _tag(store: Store) -> None:
    store.thread("main").tag("x", "y", ref="third")


def _describe(store: Store) -> None:
    store.thread("main").describe(owner="zoe", metadata={"team": 8})


def _record(store: Store) -> None:
    store.thread("main").record_all({"one": 1, "two": [2] * 200}, checkpoint="third")


def _delete_checkpoint(store: Store) -> None:
    store.thread("main").delete("second")


def _delete_thread(store: Store) -> None:
    store.thread("main").delete()


def _delete_family(store: Store) -> None:
    store.delete("main", "side")


def _prune(store: Store) -> None:
    store.prune(Retention(last=1, within=timedelta(0), tagged=False, labelled=False))


def _save_agent(store: Store) -> None:
    agent = store.agents.load("scout")
    agent.state["more"] = "t" * 500
    store.agents.save(agent)


def _checkpoint_agent(store: Store) -> None:
    store.agents.checkpoint("scout", "third", id="third", description="d")


def _restore_agent(store: Store) -> None:
    store.agents.restore("scout", "pinned")


def _delete_agent(store: Store) -> None:
    store.agents.delete("scout")


def _delete_agent_checkpoint(store: Store) -> None:
    store.agents.delete_checkpoint("scout", "pinned")


def _create_conversation(store: Store) -> None:
    store.conversations.create("new", agent="scout", messages=[said(8)])


def _add_message(store: Store) -> None:
    file = Attachment(id="other file", content="w" * 3000)
    store.conversations.add("grown", said(9, file), said(10))


def _save_conversation(store: Store) -> None:
    talk = store.conversations.load("grown")
    talk.messages[1:2] = [said(11)]
    talk.title = "edited"
    store.conversations.save(talk)


def _delete_conversation(store: Store) -> None:
    store.conversations.delete("grown", "loose")


def _save_document(store: Store) -> None:
    store.documents.save("notes/a", "other text " * 100)


AGENT_OPERATIONS: dict[str, Callable[[Store], None]] = {
    "save-agent": _save_agent,
    "checkpoint-agent": _checkpoint_agent,
    "restore-agent": _restore_agent,
    "delete-agent": _delete_agent,
    "delete-agent-checkpoint": _delete_agent_checkpoint,
    "create-conversation": _create_conversation,
    "add-message": _add_message,
    "save-conversation": _save_conversation,
    "delete-conversation": _delete_conversation,
    "save-document": _save_document,
}

OPERATIONS: dict[str, Callable[[Store], None]] = {
    "first-save": _first_save,
    "save": _save,
    "append": _append,
    "fork": _fork,
    "rewind": _rewind,
    "hard-rewind": _hard_rewind,
    "undo": _undo,
    "label": _label,
    "tag": _tag,
    "describe": _describe,
    "record": _record,
    "delete-checkpoint": _delete_checkpoint,
    "delete-thread": _delete_thread,
    "delete-family": _delete_family,
    "prune": _prune,
}

# The steps of each call; the state after each step is a whole one.
STEPS: dict[str, list[Step]] = {
    **{name: [operation] for name, operation in OPERATIONS.items()},
    "compact": [lambda store: store.delete("other"), lambda store: store.compact()],
    **{name: [operation] for name, operation in AGENT_OPERATIONS.items()},
}


def build_for(call: str, path: str) -> None:
    """Make the store that a call starts from."""
    (build_agents if call in AGENT_OPERATIONS else build)(path)


def dump(store: Store) -> object:
    """The whole content of a store, as values that can be compared."""
    found = [*store.threads(limit=None), *store.threads(kind="pin", limit=None)]
    threads = sorted(found, key=lambda thread: thread.id)
    return {
        "threads": threads,
        "content": {record.id: _content(store, record.id) for record in threads},
        "changes": store.changes(limit=100_000).items,
    }


def _content(store: Store, name: str) -> object:
    thread = store.thread(name)
    history = thread.history(None, all=True)
    return {
        "history": history.items,
        "line": thread.history(None).items,
        "states": [store.load(checkpoint) for checkpoint in history],
        "head": thread.load(),
        "journal": thread.journal(),
        "journals": [thread.journal(checkpoint=c) for c in history],
        "moves": thread.moves(None).items,
    }


def problems_of(store: Store) -> list[str]:
    """The problems that `Store.verify` finds, as texts."""
    return [str(problem) for problem in store.verify().problems]


def lost_appends(store: Store, acknowledged: int) -> list[str]:
    """The problems of a store, and the loss of appends that it acknowledged."""
    found = len(store.thread("chat").load()["log"])
    is_lost = found < acknowledged
    lost = [f"{acknowledged} saves acknowledged, {found} are there"] if is_lost else []
    return problems_of(store) + lost


def address(folder: str, place: str = FILE_PLACE) -> str:
    """The URL of a store at a place in a folder."""
    kind, colon, name = place.rpartition(":")
    return f"{kind}{colon}{os.path.join(folder, name)}"


def files_of(url: str) -> list[str]:
    """Every file of a store in a file or in a folder."""
    place = url.rpartition(":")[2]
    if os.path.isfile(place):
        return [place]
    found = os.walk(place)
    return [os.path.join(folder, name) for folder, _, names in found for name in names]


def copy_folder(source: str, target: str, place: str = FILE_PLACE) -> str:
    """Make a fresh copy of a closed or abandoned store; returns its URL."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return address(target, place)


def goes_on(store: Store) -> str | None:
    """Save once more; returns what is wrong with that save, or ``None``."""
    thread = store.thread("afterwards")
    before = thread.step
    try:
        saved = thread.append(messages=messages(before, 1))
    except HoldfastError as error:
        return f"the next save failed: {error!r}"
    if saved.step != before + 1 or len(thread.load()["messages"]) != before + 1:
        return "the next save is not what was saved"
    return None


def lazy_disk(name: str) -> FaultyDisk:
    """A disk that never syncs; the system keeps the writes of a killed process."""
    return FaultyDisk(name, syncing=False)
