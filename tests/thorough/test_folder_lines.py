"""A folder with any lines, names and intents: an error of Holdfast, or an answer."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import warnings
from pathlib import Path

import pytest
from xxhash import xxh3_64_hexdigest

import holdfast
from holdfast import Agent, HoldfastError, Message, Retention
from inner.directory import FIRST, checked
from support.fuzz import fuzz, mutate

NUMBERS = [
    0,
    -1,
    1,
    2,
    2**31,
    2**32,
    2**53,
    2**62,
    2**63 - 1,
    2**63,
    2**64,
    10**40,
    0.5,
]
STRINGS = [
    "",
    "x",
    "../x",
    "\0",
    "text:",
    "text::",
    "base64:!",
    "a" * 5000,
    "é\n",
    "[]",
]
VALUES = [*NUMBERS, *STRINGS, None, True, [], {}, [[1, 0]], [[0, 2**32]], {"": 1}]
NAMES = [
    "x-9.jsonl",
    "x-1.jsonl",
    "x.jsonl",
    "x-99999999999999999999.jsonl",
    "é-1.jsonl",
]
THREADS = ["chat", "fork", "other", "agent:scout", "conversation:c", "document:d", "no"]


@pytest.fixture
def folder(tmp_path):
    """A folder with lines of every kind, to be changed in copies."""
    with holdfast.open(f"dir:{tmp_path / 'sound'}") as store:
        chat = store.thread("chat", owner="ann", metadata={"k": 1})
        for n in range(3):
            chat.append(messages=[{"n": n, "text": "words " * 20}])
        chat.label("done")
        chat.tag("a", "b")
        chat.record("paid", {"sum": 1})
        chat.fork("fork").append(messages=["on the fork"])
        chat.rewind("@~1")
        store.thread("other").append(messages=["x"])
        store.agents.save(Agent(id="scout", state={"n": 1}))
        store.conversations.create("c", agent="scout", messages=[Message.user("hi")])
        store.agents.checkpoint("scout", "first")
        store.conversations.add("c", Message.user("more"))
        store.agents.checkpoint("scout", "second")
        store.documents.save("d", "text " * 20)
        store.thread("deleted").save(1)
        store.delete("deleted")
        store.thread("erased").save(2)
        store.erase(thread="erased")
    return tmp_path


def test_whatever_lines_a_folder_has_it_answers_or_says_what_is_wrong(folder):
    assert fuzz(attempt, folder) > 0


def attempt(chance: random.Random, folder: Path) -> None:
    place = folder / "changed"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder / "sound", place)
    if chance.random() < 0.7:
        shutil.rmtree(place / ".holdfast")
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        chance.choice(CHANGES)(chance, place)
    shutil.rmtree(folder / "saved", ignore_errors=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        use(chance, place, folder / "saved")


def use(chance: random.Random, place: Path, saved: Path) -> None:
    calls = [
        lambda store: store.threads(limit=None),
        lambda store: store.verify(),
        lambda store: store.changes(limit=1000),
        lambda store: store.stats(),
        lambda store: store.salvage(f"dir:{saved}"),
        lambda store: store.search("words"),
        lambda store: store.thread("new").save({"n": 1}),
        lambda store: store.prune(Retention(last=1)),
        lambda store: store.compact(),
        lambda store: store.agents.restore("scout", "first"),
        lambda store: store.export_to(f"{saved}.hfa"),
    ]
    for name in THREADS:
        calls += [
            lambda store, name=name: store.thread(name).load(),
            lambda store, name=name: [
                store.load(c) for c in store.thread(name).history(None, all=True)
            ],
            lambda store, name=name: store.thread(name).journal(),
            lambda store, name=name: store.thread(name).moves(None),
            lambda store, name=name: store.thread(name).append(messages=["more"]),
            lambda store, name=name: store.delete(name),
        ]
    with holdfast.open(f"dir:{place}", read_only=chance.random() < 0.3) as store:
        for call in chance.sample(calls, 12):
            with contextlib.suppress(HoldfastError):
                call(store)


# --- changes --------------------------------------------------------------------------


def some_file(chance: random.Random, place: Path) -> Path:
    return chance.choice(sorted(place.glob("*.jsonl")))


def change_bytes(chance: random.Random, place: Path) -> None:
    path = some_file(chance, place)
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 3, 30))):
        if data:
            data[chance.randrange(len(data))] = chance.randrange(256)
    del data[chance.randrange(len(data) + 1) if chance.random() < 0.2 else len(data) :]
    path.write_bytes(data)


def change_order(chance: random.Random, place: Path) -> None:
    path = some_file(chance, place)
    lines = path.read_bytes().splitlines(keepends=True) or [b"\n"]
    others = some_file(chance, place).read_bytes().splitlines(keepends=True)
    at = chance.randrange(len(lines))
    chance.choice(
        [
            lambda: lines.pop(at),
            lambda: lines.insert(chance.randrange(len(lines)), lines[at]),
            lambda: chance.shuffle(lines),
            lambda: lines.extend(others),
            lambda: lines.insert(
                at, chance.choice([b"\n", b"<<<<<<< HEAD\n", b"{}\n"])
            ),
            lines.clear,
        ]
    )()
    path.write_bytes(b"".join(lines))


def change_content(chance: random.Random, place: Path) -> None:
    """Lines that are whole and follow one another, but say something else."""
    path = some_file(chance, place)
    found = [body_of(line) for line in path.read_bytes().splitlines(keepends=True)]
    bodies = [body for body in found if body is not None]
    for _ in range(chance.choice((1, 1, 2, 8))):
        if bodies:
            mutate(chance, chance.choice(bodies), VALUES)
    path.write_bytes(b"".join(chained(bodies)))


def change_names(chance: random.Random, place: Path) -> None:
    path, new = some_file(chance, place), place / chance.choice(NAMES)
    if not os.path.lexists(new):
        chance.choice([shutil.copy, os.rename, os.symlink])(path, new)


def bring_intent(chance: random.Random, place: Path) -> None:
    work = place / ".holdfast"
    work.mkdir(exist_ok=True)
    names = [p.name for p in place.glob("*.jsonl")] + ["../changed/x.jsonl", "y.jsonl"]
    intent = {
        "after": "",
        "appends": {chance.choice(names): {"offset": 10, "text": "x"}},
        "renames": {chance.choice(["new-0", "../x", "lock"]): chance.choice(names)},
        "removes": [chance.choice(names)],
    }
    if chance.random() < 0.5:
        mutate(chance, intent, VALUES)
    (work / "new-0").write_text("{}\n")
    (work / "intent").write_bytes(line_of(intent)[0])


CHANGES = [
    change_bytes,
    change_order,
    change_content,
    change_content,
    change_content,
    change_names,
    bring_intent,
]


# --- lines ----------------------------------------------------------------------------


def body_of(line: bytes):
    try:
        return json.loads(b"{" + checked(line)[1])
    except ValueError:
        return None


def line_of(body) -> tuple[bytes, str]:
    data = json.dumps(body, separators=(",", ":")).encode()[1:]
    check = xxh3_64_hexdigest(data)
    head = b'{"bytes":%d,"check":"%b",' % (len(data), check.encode())
    return head + data + b"\n", check


def chained(bodies):
    after = FIRST
    for body in bodies:
        line, after = line_of({**body, "after": after} if "after" in body else body)
        yield line
