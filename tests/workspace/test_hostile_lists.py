"""Lists of files that an attacker made: no path leads out of the folder."""

from __future__ import annotations

import hashlib
import os

import pytest

import holdfast
from holdfast.cli import main
from holdfast.testing.trials.hostile_files import (
    FILE,
    FOLDER,
    LINK,
    ForgedFiles,
    forged,
)
from holdfast.workspace import FileEntry, Tree, Workspace
from inner.values import MAGIC, About, Below, Level, StoredFile
from support.workspaces import files_of, write

HOSTILE = {
    "above": [(b"../.bashrc", FILE, b"echo")],
    "far above": [(b"a/../../.bashrc", FILE, b"echo")],
    "absolute": [(b"/etc/cron.d/x", FILE, b"echo")],
    "empty": [(b"", FILE, b"echo")],
    "empty part": [(b"a//b", FILE, b"echo")],
    "slash at the end": [(b"a/", FOLDER, b"")],
    "itself": [(b"a/./b", FILE, b"echo")],
    "zero": [(b"a\0b", FILE, b"echo")],
    "ours": [(b".holdfast/restore/intent", FILE, b"echo")],
    "ours below": [(b"sub/.holdfast/index", FILE, b"echo")],
    "ours in capitals": [(b".HoldFast/lock", FILE, b"echo")],
    "ours on macOS": [(".h\u200coldfast/lock".encode(), FILE, b"echo")],
    "below a link": [(b"a", LINK, b"/etc"), (b"a/passwd", FILE, b"echo")],
    "far below a link": [(b"a", LINK, b"/etc"), (b"a/b/c", FILE, b"echo")],
    "below a file": [(b"a", FILE, b"x"), (b"a-b", FILE, b""), (b"a/b", FILE, b"x")],
    "twice": [(b"a", LINK, b"/etc"), (b"a", FILE, b"echo")],
    "wrong order": [(b"b", FILE, b"x"), (b"a", FILE, b"x")],
    "too deep": [(b"/".join([b"a"] * 300), FILE, b"x")],
    "too long": [(b"a" * 70_000, FILE, b"x")],
    "no kind": [(b"a", 1 << 40, b"x")],
}


@pytest.fixture
def given(tmp_path):
    """A store that an attacker made, with a thread for each hostile list."""
    with holdfast.open(tmp_path / "given.db") as store:
        for name, entries in HOSTILE.items():
            thread = store.thread(name)
            thread.save({"n": 1}, files=forged(entries))
            thread.save({"n": 2})
    with holdfast.open(tmp_path / "given.db", cache_size=0) as store:
        yield store


def test_verify_finds_each_hostile_list(given):
    found = [str(each) for each in given.verify().problems]

    assert [name for name in HOSTILE if not any(f"'{name}'" in f for f in found)] == []


def test_an_archive_with_a_hostile_list_is_neither_checked_nor_imported(
    given, tmp_path
):
    with holdfast.open(":memory:") as store:
        for name in HOSTILE:
            archive = tmp_path / f"{name}.hfa"
            given.export_to(archive, threads=[name])
            with pytest.raises(holdfast.Corrupt, match="list of files"):
                holdfast.archive.check(archive)
            with pytest.raises(holdfast.Corrupt, match="list of files"):
                store.import_archive(archive)
        assert list(store.threads()) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_is_read_or_written_by_a_hostile_list(given, tmp_path, name):
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    workspace, thread = Workspace(home / "project"), given.thread(name)

    for call in (
        lambda: thread.files("@1"),
        lambda: thread.read_file("a", "@1"),
        lambda: thread.blame_file("a"),
        lambda: thread.save({}, files=workspace),
        lambda: workspace.restore(thread, "@1", dry_run=True),
        lambda: workspace.restore(thread, "@1", force=True),
        lambda: workspace.restore(thread, "@1", into=home / "project"),
    ):
        with pytest.raises(holdfast.Corrupt, match="list of files"):
            call()
    explored = thread.explore(lambda _: None, n=1, workspace=workspace)
    assert [branch.status for branch in explored] == ["failed"]
    assert files_of(home) == {"project": "folder"}


def test_the_command_line_refuses_a_hostile_list(given, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "home" / "project"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    given.close()
    for arguments in (
        ["restore", "above", "@1", "--files", "--workspace", ".", "--yes"],
        ["restore", "above", "@1", "--into", "other", "--yes"],
        ["diff", "above@1", "--files"],
        ["show", "above@1:../.bashrc"],
    ):
        status = main(["--store", str(tmp_path / "given.db"), *arguments])
        assert status != 0
        assert "list of files" in capsys.readouterr().err
    assert set(files_of(tmp_path / "home")) <= {"project", "project/other"}


@pytest.mark.parametrize(
    ("lower", "upper"), [("a", "a/b"), ("a/b", "a"), ("a/b/c", "a")]
)
def test_a_link_that_one_level_hides_from_another_is_found(tmp_path, lower, upper):
    """Each level alone is sound; together a file is below a link."""

    def level(path, number, below=()):
        digest = hashlib.sha256(b"/etc").digest()
        stored = StoredFile(path.encode(), LINK, 4, digest, (number, 1))
        return Level(files=(stored,), below=below)

    def base(numbers):
        data = level(lower, numbers[0]).encoded()
        shared = (Below(numbers[0] + 1, len(data), hashlib.sha256(data).digest()),)
        tops.append(level(upper, numbers[0], shared).encoded())
        return data

    tops = []
    with holdfast.open(tmp_path / "given.db") as store:
        thread = store.thread("agent")
        thread.save({"n": 1}, files=ForgedFiles([b"/etc"], base))
        thread.save({"n": 2}, files=ForgedFiles([], lambda _: tops[-1]))
    with holdfast.open(tmp_path / "given.db", cache_size=0) as store:
        thread = store.thread("agent")
        assert thread.files("@1")[lower]
        with pytest.raises(holdfast.Corrupt, match="has files in it"):
            thread.files()
        with pytest.raises(holdfast.Corrupt, match="has files in it"):
            thread.diff_files("@1")
        [problem] = store.verify().problems
        assert "has files in it" in str(problem)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        MAGIC,
        MAGIC + b"\x91" * 100_000,
        Level(about=About(("rule",))).encoded().replace(b"rule", b"\xff\xfe\xfd."),
        MAGIC + b"\x91\xdd\xff\xff\xff\xff",
        Level(below=(Below(0, 1, b""), Below(0, 1, b""))).encoded(),
        Level(removed=(b"b", b"a")).encoded(),
        *(
            Level(files=(StoredFile(b"a", FILE, size, bytes(32), runs),)).encoded()
            for size, runs in [
                (1, (0, 2**31)),
                (2**62, (0, 1)),
                (1, (0,)),
                (1, (-1, 1)),
            ]
        ),
    ],
)
def test_bytes_that_are_no_list_are_refused_at_once(tmp_path, data):
    with holdfast.open(tmp_path / "given.db") as store:
        store.thread("agent").save({"n": 1}, files=ForgedFiles([], lambda _: data))
    with holdfast.open(tmp_path / "given.db", cache_size=0) as store:
        with pytest.raises(holdfast.Corrupt, match="list of files"):
            store.thread("agent").files()
        assert not store.verify().ok


def test_a_link_to_no_name_is_not_restored(tmp_path, folder):
    entries = [(b"a", FILE, b"x"), (b"b", LINK, b"a\0b")]
    with holdfast.open(tmp_path / "given.db") as store:
        store.thread("agent").save({"n": 1}, files=forged(entries))
    with (
        holdfast.open(tmp_path / "given.db", cache_size=0) as store,
        pytest.raises(holdfast.Corrupt, match="the link 'b'"),
    ):
        Workspace(folder).restore(store.thread("agent"), "@1", force=True)
    assert files_of(folder) == {}


def test_a_file_is_not_larger_than_its_list_says(tmp_path):
    def top(numbers):
        digest = hashlib.sha256(b"x" * 90).digest()
        stored = StoredFile(b"a", FILE, 3, digest, (numbers[0], 1))
        return Level(files=(stored,)).encoded()

    with holdfast.open(tmp_path / "given.db") as store:
        store.thread("agent").save({}, files=ForgedFiles([b"x" * 90], top))
    with (
        holdfast.open(tmp_path / "given.db", cache_size=0) as store,
        pytest.raises(holdfast.Corrupt, match="the file 'a'"),
    ):
        store.thread("agent").read_file("a")


def raw(*entries):
    class Raw:
        """What a program passes as files without a folder."""

        tree = Tree({entry.path: entry for entry in entries})

        def content(self, path):
            yield b"x"

    return Raw()


@pytest.mark.parametrize(
    "name", [n for n in HOSTILE if n not in ("twice", "wrong order")]
)
def test_a_raw_list_is_refused_when_it_is_saved(thread, name):
    digest = hashlib.sha256(b"x").digest()
    entries = [FileEntry(path, mode, 1, digest) for path, mode, _ in HOSTILE[name]]

    with pytest.raises(holdfast.Unstorable):
        thread.save({}, files=raw(*entries))

    assert thread.head is None


def test_a_raw_list_says_what_it_has(thread):
    digest = hashlib.sha256(b"x").digest()
    lie, other = FileEntry(b"a", FILE, 1, digest), FileEntry(b"../b", FILE, 1, digest)
    snapshot = raw(lie)
    snapshot.tree = Tree({b"a": other})
    for files in (snapshot, raw(FileEntry(b"a", FILE, -1, digest))):
        with pytest.raises(holdfast.Unstorable):
            thread.save({}, files=files)
    with pytest.raises(holdfast.Conflict):
        thread.save({}, files=raw(FileEntry(b"a", FILE, 5_000, digest)))


def test_a_folder_named_as_ours_in_capitals_is_left_out_and_listed(
    folder, workspace, thread
):
    write(folder / ".HOLDFAST" / "index")
    write(folder / "kept")
    thread.save({}, files=workspace)

    assert list(thread.files()) == ["kept"]
    assert [each.path for each in thread.files().omitted] == [b".HOLDFAST"]


# --- repositories ---------------------------------------------------------------------

HOOK = b".git/hooks/post-checkout"
REPOSITORIES = [
    (b".GIT/config", FILE, b"[core]\n\tfsmonitor = touch pwned\n"),
    (HOOK, FILE, b"#!/bin/sh\n"),
    (b"main.py", FILE, b"print()"),
    (b"sub/.hg/hgrc", FILE, b"[hooks]\n"),
]


def test_a_repository_is_restored_only_if_it_is_named(folder, tmp_path):
    with holdfast.open(tmp_path / "given.db") as store:
        store.thread("agent").save({}, files=forged(REPOSITORIES))
    store = holdfast.open(tmp_path / "given.db")
    thread, workspace = store.thread("agent"), Workspace(folder)

    seen = workspace.restore(thread, "@1", dry_run=True)
    done = workspace.restore(thread, "@1", force=True)
    apart = workspace.restore(thread, "@1", into=tmp_path / "apart")

    assert set(files_of(folder)) == set(files_of(tmp_path / "apart")) == {"main.py"}
    assert seen.written == done.written == apart.written == ("main.py",)
    assert [path for path, _ in done.left] == [".GIT", ".git", "sub/.hg"]
    assert "only if paths (--path) names it" in done.left[0][1]
    workspace.restore(thread, "@1", paths=[".git"])
    assert (folder / os.fsdecode(HOOK)).exists()
    assert not (folder / ".GIT").exists()


def test_a_workspace_that_takes_its_repository_in_restores_it(folder, thread):
    write(folder / ".git" / "config", "one")
    workspace = Workspace(folder, ignore=["!.git"])
    first = thread.save({}, files=workspace)
    write(folder / ".git" / "config", "two")
    thread.save({}, files=workspace)

    report = workspace.restore(thread, first)

    assert report.written == (".git/config",)
    assert (folder / ".git" / "config").read_text() == "one"
