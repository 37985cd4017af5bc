"""The viewer's documents are the same, whatever keeps the store."""

from __future__ import annotations

import contextlib

import pytest
from asking import asked

import holdfast
from support import databases, servers
from support.snapshots import MemorySnapshot


@contextlib.contextmanager
def on_server(_folder):
    with databases.database(servers.shared(servers.NAMES[-1])) as url:
        yield url


@contextlib.contextmanager
def in_folder(folder):
    yield f"dir:{folder}/texts"


@pytest.mark.parametrize("place", [in_folder, on_server])
def test_every_backend_gives_the_same_documents(place, tmp_path):
    path = str(tmp_path / "agents.db")
    with place(tmp_path) as other:
        first, last, fork = told(path, other)
        with asked(path) as file, asked(other) as copy:
            for route in routes(first, last, fork):
                name, _, query = route.partition("?")
                params = [tuple(pair.split("=")) for pair in query.split("&") if pair]
                given = {key: [v for k, v in params if k == key] for key, _ in params}
                expected = file.get(name, **given)

                assert copy.get(name, **given) == expected, route


def told(path, other):
    """A thread with a fork, a label and a rewind, and its copy."""
    with holdfast.open(path) as store, holdfast.open(other) as copy:
        thread = store.thread("case", owner="ada", agent="helper")
        messages = [{"role": "user", "content": f"Question {n}?"} for n in range(40)]
        first = thread.save({"messages": messages, "plan": {"step": 1}})
        fork = thread.fork("tried")
        thread.append(messages=[{"role": "assistant", "content": "An answer."}])
        files = MemorySnapshot({"notes.md": b"# Notes", "b.bin": b"\0"})
        state = {**thread.load(), "plan": {"step": 2}}
        last = thread.save(state, label="end", files=files)
        tried = fork.append(messages=[{"role": "assistant", "content": "Another."}])
        fork.tag("better")
        thread.append(messages=[{"role": "user", "content": "Rewound."}])
        thread.rewind(last)
        store.copy_to(copy)
    return first.id, last.id, tried.id


def routes(first, last, fork):
    yield from ("threads", "threads?owner=ada&limit=1", "thread?thread=case")
    yield from (f"log?thread=case&scope={scope}" for scope in ("family", "line", "all"))
    yield from (f"log?thread=case&at={first}", f"log?thread=tried&at={fork}&limit=2")
    yield from ("minimap?thread=case", "line?thread=case&first=1&limit=1")
    yield from (
        f"{name}?checkpoint={last}" for name in ("messages", "state", "context")
    )
    yield from (f"checkpoint?id={first}", f"state?checkpoint={last}&path=/messages/3")
    yield from (f"diff?from={last}&to={fork}", f"compare?at={last}&at={fork}")
    yield from (f"blame?checkpoint={last}&path=/plan/step", "search?q=answer")
    yield from ("charts?thread=case", f"rewind?thread=case&to={first}")
    yield from (f"files?checkpoint={last}", f"file?checkpoint={last}&path=notes.md")
    yield from ("effects?thread=case", f"part?checkpoint={last}&path=/plan")
