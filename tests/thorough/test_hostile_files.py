"""Lists of files, archives and restores under way with anything in them.

Each gives an answer or an error of Holdfast, and nothing outside of a folder changes.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import random
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import Agent, HoldfastError, Message, Retention
from holdfast.selftest._forged_files import FILE, LINK, ForgedFiles
from holdfast.workspace import Workspace
from inner.archive import FrameWriter, framed
from inner.values import MAGIC, Below, Level, StoredFile
from inner.workspace import FOLDER, INTENT, INTENTS, UNFINISHED, sealed
from support.fuzz import fuzz, mutate
from support.workspaces import files_of, write

NUMBERS = [0, -1, 1, 2, 255, 4096, 0o120777, 0o170777, 2**31, 2**32, 2**62, 2**63 - 1]
PATHS = [b"", b"a", b"a/b", b"a/b/c", b"../x", b"/x", b".", b"a//b", b".holdfast/lock"]
PATHS += [b".git/hooks/x", b"\xff", b"a\0", b"a/" * 300, b"x" * 70_000, b"z" * 300]
RULES = ["# .gitignore", "# ignore=", "!", "[", "**", "a**b", "\\", "!*"]
RULES += ["# x/.gitignore", "*a" * 40 + "b", "**/" * 60 + "x", "[" + "a" * 5000]
RULES += ["[!-", "/" * 3000]
VALUES = [*NUMBERS, *PATHS, *RULES, b"d" * 32, b"c" * 31, None, 0.5, [], {}]
VALUES += [[0, 1], [0, 2**31], [0, 1] * 5000, [[b"a", "why"]], [[]] * 50, "x" * 5000]


@pytest.fixture
def place(tmp_path):
    """A folder `home`, in which nothing but the folder `project` may change."""
    write(tmp_path / "home" / "mine", "mine")
    return tmp_path


@contextlib.contextmanager
def at_home(place: Path) -> Iterator[Path]:
    """A new project at home; afterwards nothing beside it may be changed."""
    home = place / "home"
    shutil.rmtree(home / "project", ignore_errors=True)
    (home / "project").mkdir()
    try:
        yield home / "project"
    finally:
        shutil.rmtree(home / "project")
        assert files_of(home) == {"mine": (0o644, "mine")}


def try_some(chance: random.Random, calls: list[Callable[[], object]]) -> None:
    for call in chance.sample(calls, min(len(calls), 10)):
        with contextlib.suppress(HoldfastError):
            call()


def change_bytes(chance: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 3, 30))):
        if changed:
            changed[chance.randrange(len(changed))] = chance.randrange(256)
    is_cut = len(data) > 1 and chance.random() < 0.1
    return bytes(changed[: chance.randrange(len(data)) if is_cut else None])


# --- lists of files -------------------------------------------------------------------


def test_whatever_a_list_of_files_has_it_is_refused_or_restored_inside(place):
    assert fuzz(try_list, place) > 0


def try_list(chance: random.Random, place: Path) -> None:
    for path in place.glob("given.db*"):
        path.unlink()
    with at_home(place) as folder:
        with holdfast.open(place / "given.db", durability="normal") as store:
            thread = store.thread("given")
            for files in (forged(chance), forged(chance)):
                thread.save({"n": chance.random()}, files=files)
            thread.fork("fork")
        with holdfast.open(place / "given.db") as store:
            try_some(chance, uses(chance, store, folder, place))


def forged(chance: random.Random) -> ForgedFiles:
    """A list that is nearly sound, over some contents."""
    link = chance.choice([b"/etc", b"..", b"", b"a\0b", b"x" * 5000])
    texts = [b"one\n", b"two\n" * 9000, b"four", link]
    paths = [b"a", b"b/c.py", b"d", b"link"]

    def top(numbers: Any) -> bytes:
        files = [
            StoredFile(
                path,
                LINK if path == b"link" else FILE,
                len(text),
                hashlib.sha256(text).digest(),
                (number, 1),
            )
            for path, text, number in zip(paths, texts, numbers, strict=True)
        ]
        rules = tuple(chance.sample(RULES, chance.randrange(3)))
        lower = Level(files=tuple(files[:1])).encoded()
        at = Below(chance.choice(numbers), len(lower), hashlib.sha256(lower).digest())
        level = msgspec.to_builtins(
            Level(files=tuple(files), removed=(b"gone",)), builtin_types=(bytes,)
        )
        level[2], level[3] = [list(rules), []], [list(msgspec.structs.astuple(at))]
        if chance.random() < 0.7:
            level[3] = []
        for _ in range(chance.choice((0, 1, 1, 2, 5))):
            mutate(chance, level, VALUES)
        data = MAGIC + msgspec.msgpack.encode(level)
        return change_bytes(chance, data) if chance.random() < 0.2 else data

    return ForgedFiles(texts, top)


def uses(chance: random.Random, store: Any, folder: Path, place: Path) -> list:
    thread, fork = store.thread("given"), store.thread("fork")
    workspace = Workspace(folder)
    write(folder / "a", "mine")
    saved = place / "saved.db"
    for path in place.glob("saved.*"):
        path.unlink()
    at = chance.choice(("@1", "@2"))
    return [
        store.verify,
        lambda: list(thread.files(at)),
        lambda: thread.read_files([b"a", b"b/c.py"], at),
        lambda: thread.diff_files("@1", "@2"),
        lambda: thread.blame_file("a"),
        lambda: thread.save({}, files=workspace),
        lambda: workspace.restore(thread, at, dry_run=True),
        lambda: workspace.restore(thread, at, force=True),
        lambda: workspace.restore(thread, at, force=True, paths=["b", ".git"]),
        lambda: workspace.restore(thread, at, into=folder / "else"),
        lambda: (workspace.restore(thread, at, state=True), workspace.undo(thread)),
        lambda: thread.merge(fork),
        lambda: store.prune(Retention(last=1)),
        store.stats,
        lambda: store.salvage(str(saved)),
        lambda: copied(store, place / "saved.copy"),
        lambda: store.export_to(place / "saved.hfa"),
        lambda: holdfast.archive.check(place / "saved.hfa"),
    ]


def copied(store: Any, path: Path) -> None:
    with holdfast.open(path) as other:
        store.copy_to(other)


# --- archives -------------------------------------------------------------------------


@pytest.fixture
def archives(place):
    """Archives of one family each, to be changed in memory."""
    write(place / "src" / "a", "text\n" * 9000)
    write(place / "src" / "b", "b")
    with holdfast.open(place / "sound.db") as store:
        chat = store.thread("chat", owner="ann", metadata={"k": (1, b"x")})
        chat.save({"n": 1, "log": ["x" * 3000]}, files=Workspace(place / "src"))
        write(place / "src" / "b", "other")
        chat.append(log=[{"role": "user"}], files=Workspace(place / "src"))
        chat.label("done")
        chat.record("paid", {"sum": 1})
        chat.fork("fork").append(log=["on the fork"])
        chat.rewind("@~1")
        store.agents.save(Agent(id="scout", state={"n": 1}))
        store.conversations.create("c", agent="scout", messages=[Message.user("hi")])
        store.agents.checkpoint("scout", "first")
        for name in ("chat", "agent:scout", "conversation:c"):
            store.export_to(place / f"{name}.hfa", threads=[name])
    return place


def test_whatever_an_archive_has_it_is_refused_or_imported(archives):
    assert fuzz(try_archive, archives) > 0


TEXTS = [v.decode("latin-1") if isinstance(v, bytes) else v for v in VALUES[:-6]]
TEXTS += ["chat", [[0, 1]], "2" * 64, {"$hf.tuple": []}]
FRAME = re.compile(rb"([a-z]+) ([0-9]+) [0-9a-f]{16}\n")


def try_archive(chance: random.Random, place: Path) -> None:
    data = chance.choice(sorted(place.glob("*.hfa"))).read_bytes()
    if chance.random() < 0.1:
        given = change_bytes(chance, data)
    else:
        frames = list(frames_of(data))
        for _ in range(chance.choice((1, 1, 2, 4))):
            change_frame(chance, frames)
        given = archive_of(frames)
    with contextlib.suppress(HoldfastError):
        holdfast.archive.check(BytesIO(given))
    with at_home(place) as folder, holdfast.open(":memory:") as store:
        store.import_archive(BytesIO(given))
        threads = [thread.id for thread in store.threads(limit=None)]
        calls = [partial(use_thread, store.thread(name), folder) for name in threads]
        try_some(chance, [store.verify, lambda: store.search("x"), *calls])


def use_thread(thread: Any, folder: Path) -> None:
    for checkpoint in thread.history(None, all=True):
        with contextlib.suppress(HoldfastError):
            thread.load(checkpoint)
        with contextlib.suppress(HoldfastError):
            Workspace(folder).restore(thread, checkpoint, force=True)
    thread.journal()
    thread.moves(None)


def frames_of(data: bytes) -> Iterator[tuple[str, bytes]]:
    at = data.index(b"\n") + 1
    while at < len(data):
        match = FRAME.match(data, at)
        assert match is not None
        end = match.end() + int(match[2])
        yield match[1].decode(), data[match.end() : end]
        at = end + 1


def change_frame(chance: random.Random, frames: list[tuple[str, bytes]]) -> None:
    at = chance.randrange(len(frames) - 1)
    kind, payload = frames[at]
    how = chance.random()
    if how < 0.1:
        frames[at : at + 1] = chance.choice(([], [frames[at]] * 2))
    elif kind == "segment" and payload.startswith(MAGIC) and how < 0.8:
        with contextlib.suppress(ValueError):  # it has been changed already
            level = msgspec.msgpack.decode(payload[len(MAGIC) :])
            mutate(chance, level, VALUES)
            frames[at] = kind, MAGIC + msgspec.msgpack.encode(level)
    elif kind == "segment" or how < 0.2:
        frames[at] = kind, change_bytes(chance, payload)
    else:
        with contextlib.suppress(ValueError):  # it has been changed already
            form = json.loads(payload)
            mutate(chance, form, TEXTS)
            frames[at] = kind, json.dumps(form, separators=(",", ":")).encode()


def archive_of(frames: list[tuple[str, bytes]]) -> bytes:
    """An archive whose checksums and digests are right again."""
    family = hashlib.sha256()
    for kind, payload in frames:
        if kind in {"family", "thread", "checkpoint", "entry", "move"}:
            family.update(framed(kind, payload))
    made = BytesIO()
    writer = FrameWriter(made)
    for kind, payload in frames[:-1]:
        heading = with_digest(payload, family.hexdigest()) if kind == "archive" else b""
        writer.write(kind, heading or payload)
    writer.end()
    return made.getvalue()


def with_digest(payload: bytes, digest: str) -> bytes:
    with contextlib.suppress(ValueError, LookupError, TypeError):
        heading = json.loads(payload)
        heading["families"][0]["sha256"] = digest
        return json.dumps(heading, separators=(",", ":")).encode()
    return b""


# --- restores under way ---------------------------------------------------------------


def test_whatever_restore_is_under_way_nothing_outside_changes(place):
    assert fuzz(try_intent, place) > 0


def try_intent(chance: random.Random, place: Path) -> None:
    with at_home(place) as folder, holdfast.open(":memory:") as store:
        thread, workspace = store.thread("agent"), Workspace(folder)
        for text in ("one", "two"):
            write(folder / "a", text)
            write(folder / text / "b", text)
            thread.save({"n": text}, files=workspace)
            shutil.rmtree(folder / text)
        workspace.restore(thread, "@1", state=True, force=True)
        shutil.rmtree(folder / ".holdfast" / "restore", ignore_errors=True)
        own = os.open(folder / ".holdfast", FOLDER)
        try:
            bring_intent(chance, folder / ".holdfast", own)
        finally:
            os.close(own)
        for call in (
            lambda: Workspace(folder),
            lambda: thread.save({}, files=workspace),
            lambda: workspace.undo(thread),
            lambda: workspace.restore(thread, "@1", state=True, force=True),
        ):
            with contextlib.suppress(HoldfastError):
                call()


def bring_intent(chance: random.Random, ours: Path, own: int) -> None:
    """Files of a restore under way, most of them with the seal of this user."""
    for name in ("new", "old"):
        (ours / "restore" / name).mkdir(parents=True)
        for number in range(chance.randrange(4)):
            leave(chance, ours / "restore" / name / str(number))
    intent = an_intent(chance, mark(ours / "restore" / "new" / "0"))
    places = {
        INTENT: f"restore/{chance.choice(INTENTS)}",
        "undo": "undo",
        UNFINISHED: UNFINISHED,
    }
    for kind in chance.choice((list(places), list(places)[:1])):
        value = copy.deepcopy(intent)
        for _ in range(chance.choice((0, 0, 1, 1, 3))):
            mutate(chance, value, VALUES)
        chosen = value if kind == INTENT else value.get("state")
        data = msgspec.msgpack.encode(chosen)
        if chance.random() < 0.1:
            data = change_bytes(chance, data)
        if chance.random() < 0.9:
            data = sealed(own, kind, data)
        (ours / places[kind]).write_bytes(data)


def an_intent(chance: random.Random, staged: tuple[int, int, int]) -> dict[str, Any]:
    digest = hashlib.sha256(b"new").digest()
    entries = [None, [b"a", FILE, 3, digest], [b"one/b", FILE, 3, digest]]
    marks = [None, [1, 3, 5], list(staged)]
    return {
        "steps": [
            {
                "change": as_change(chance, entries),
                "found": as_mark(chance.choice(marks)),
                "staged": as_mark(chance.choice(marks)),
            }
            for _ in range(chance.randrange(4))
        ],
        "made": chance.sample([b"one", b"two/x", b"a"], chance.randrange(3)),
        "removed": [[b"one", 0o755]][: chance.randrange(2)],
        "state": {"thread": "agent", "checkpoint": "x", "expect": None},
    }


def as_change(chance: random.Random, entries: list[Any]) -> dict[str, Any]:
    names = ("path", "mode", "size", "digest")
    before, after = (
        entry and dict(zip(names, entry, strict=True))
        for entry in chance.choices(entries, k=2)
    )
    path = chance.choice((b"a", b"one/b", b"new"))
    return {"path": path, "before": before, "after": after}


def mark(path: Path) -> tuple[int, int, int]:
    if not path.exists():
        return (1, 2, 3)
    about = path.lstat()
    return (about.st_ino, about.st_size, about.st_mtime_ns)


def as_mark(value: Any) -> Any:
    return value and dict(zip(("inode", "size", "changed_at"), value, strict=True))


def leave(chance: random.Random, path: Path) -> None:
    """A file, a link or a folder among those of a restore."""
    kind = chance.choice((stat.S_IFREG, stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR))
    if kind == stat.S_IFLNK:
        path.symlink_to("../../../../mine")
    elif kind == stat.S_IFDIR:
        path.mkdir()
    else:
        path.write_bytes(b"new")
