"""Searches that are killed, and searches beside others that search and save.

usage: kill_search.py kill FOLDER STRIDE
       kill_search.py swarm PATH PROCESSES COUNT

One line of JSON: how many points or processes there were, and what was wrong.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import holdfast
from holdfast import Store
from holdfast.faults import Fault, FaultyDisk, kill
from inner.engine import index
from inner.sqlite import search_index
from support.children import Child, Gate, report
from support.stores import backend_of

Tell = Callable[[object], None]

CONVERSATIONS, MESSAGES = 12, 30
FILE = "store.db"
# So that there are several transactions to be killed in.
index.BATCH = 20_000


def text(conversation: int, position: int) -> str:
    return f"message {position} of {conversation} " + "and so on " * 20


class Stopped(BaseException):
    """What no code catches."""


def stop(done: int, total: int) -> None:
    raise Stopped


def build(path: str) -> None:
    """A store whose first search was stopped, and that has changed since."""
    with holdfast.open(path, durability="normal") as store:
        for number in range(CONVERSATIONS):
            if number == CONVERSATIONS // 2:
                with suppress(Stopped):
                    store.search("message", progress=stop)
            messages = [user(text(number, n)) for n in range(MESSAGES)]
            store.conversations.create(f"{number}", messages=messages)
        edited = store.conversations.load("0")
        edited.messages[3:] = [user(text(0, n)) for n in range(4, MESSAGES + 1)]
        store.conversations.save(edited)
        store.conversations.delete("1")


def user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}


def problems_of(store: Store) -> list[str]:
    """What of a store and its index is not as it must be."""
    found = [str(problem) for problem in store.verify().problems]
    for query in ("message 7 of", "MESSAGE 30", "of 11 and", "of 1 and", "nowhere"):
        wanted = sorted(
            (thread.id.removeprefix("conversation:"), position)
            for thread in store.threads(kind="conversation", limit=None)
            for position, message in enumerate(store.load(thread.head)["messages"])
            if query.casefold() in message["content"]
        )
        matches = store.search(f'"{query}"', limit=None)
        if sorted((m.conversation, m.position) for m in matches) != wanted:
            found.append(f"{query!r}: {len(matches)} found of {len(wanted)}")
    return found + index_problems_of(store)


def index_problems_of(store: Store) -> list[str]:
    """What is missing from an index that is up to date, or in it twice."""
    db = backend_of(store).database.writer
    assert not search_index.is_damaged(db)
    known = db.execute(
        "select t.name, i.changed = t.changed, s.first, s.last"
        " from thread t left join search_thread i on i.thread = t.number"
        " left join search_stretch s on s.thread = t.number"
        " where t.deleted_at is null order by t.name, s.first"
    ).fetchall()
    found: list[str] = []
    following: dict[str, int] = {}
    for name, is_current, first, last in known:
        if not is_current or first != following.get(name, 0):
            found.append(f"{name}: {first}-{last}, current: {is_current}")
        following[name] = last + 1
    return found


# --- kill -----------------------------------------------------------------------------


def search_on(path: str, at: int, tell: Tell) -> None:
    """In a child: search, and be killed at the given write to a file."""
    disk = FaultyDisk("faulty")
    store = disk.open(path, durability="normal")
    disk.arm(Fault(at=at, effect=kill))
    store.search('"message 7 of"')
    tell(disk.heal())


def kill_searches(folder: str, stride: int) -> None:
    start = os.path.join(folder, "start")
    os.mkdir(start)
    build(os.path.join(start, FILE))
    wrong: list[str] = []
    kills, at = 0, 1
    while True:
        there = os.path.join(folder, f"{at}")
        shutil.copytree(start, there)
        path = os.path.join(there, FILE)
        child = Child(partial(search_on, path, at))
        child.wait()
        with holdfast.open(path, durability="normal") as store:
            wrong += [f"at {at}: {problem}" for problem in problems_of(store)]
        if not child.was_killed:
            break
        kills += 1
        at += stride
    report({"kills": kills, "status": child.status, "wrong": wrong})


# --- swarm ----------------------------------------------------------------------------


def save_and_search(path: str, rank: int, count: int, gate: Gate, tell: Tell) -> None:
    """In a child: add messages, and look for each, and for what all have added."""
    wrong: list[str] = []
    with holdfast.open(path, durability="normal", busy_timeout=60) as store:
        gate.wait()
        own = f"own {rank}"
        store.conversations.create(own)
        for n in range(count):
            store.conversations.add(own, user(text(rank, n)))
            store.conversations.add("shared", user(f"shared by {rank}: {n}."))
            mine = store.search(f'"message {n} of {rank} "', limit=None)
            if [(m.conversation, m.position) for m in mine] != [(own, n)]:
                wrong.append(f"{rank}: message {n} is not found")
            shared = store.search(f'"shared by {rank}:"', limit=None)
            if len(shared) != n + 1:
                wrong.append(f"{rank}: {len(shared)} of {n + 1} shared")
    tell(wrong)


def swarm(path: str, processes: int, count: int) -> None:
    with holdfast.open(path) as store:
        store.conversations.create("shared")
    gate = Gate(processes)
    works = [
        partial(save_and_search, path, rank, count, gate) for rank in range(processes)
    ]
    children = [Child(work) for work in works]
    gate.open()
    wrong = [line for child in children for lines in child.finish() for line in lines]
    with holdfast.open(path) as store:
        wrong += problems_of(store)
    report({"processes": processes, "wrong": wrong})


if __name__ == "__main__":
    if sys.argv[1] == "kill":
        kill_searches(sys.argv[2], int(sys.argv[3]))
    else:
        swarm(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
