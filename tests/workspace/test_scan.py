"""What a scan finds in a folder, what it leaves out, and what it does not read."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import holdfast
from holdfast.workspace import Workspace
from support.effort import THOROUGH
from support.workspaces import wait_for_the_clock, write


def names(snapshot):
    return sorted(os.fsdecode(path) for path in snapshot.tree.entries)


def omitted(snapshot):
    return {os.fsdecode(each.path): each.reason for each in snapshot.tree.omitted}


def content(snapshot, name):
    return b"".join(snapshot.content(os.fsencode(name)))


def backdate(path):
    """Make a file older than any index: the next scan may believe its times."""
    os.utime(path, (1_000_000_000, 1_000_000_000), follow_symlinks=False)


def test_a_scan_has_files_links_and_empty_folders_with_their_modes(folder, workspace):
    write(folder / "run.sh", "echo", 0o755)
    write(folder / "deep" / "note.txt", "text", 0o600)
    (folder / "empty" / "inner").mkdir(parents=True)
    (folder / "link").symlink_to("nowhere/at/all")

    snapshot = workspace.scan()

    entries = snapshot.tree.entries
    assert names(snapshot) == ["deep/note.txt", "empty/inner", "link", "run.sh"]
    assert entries[b"run.sh"].mode == stat.S_IFREG | 0o755
    assert entries[b"deep/note.txt"].mode == stat.S_IFREG | 0o600
    assert entries[b"empty/inner"].is_directory
    assert entries[b"link"].is_link
    assert content(snapshot, "link") == b"nowhere/at/all"
    assert content(snapshot, "run.sh") == b"echo"


def test_a_quiet_scan_gives_the_same_tree_and_opens_no_file(folder, tmp_path):
    write(folder / "a" / "b.txt")
    program = (
        "import os, sys, time\n"
        "from holdfast.workspace import Workspace\n"
        "w = Workspace(sys.argv[1])\n"
        "first = w.scan()\n"
        "time.sleep(0.05)\n"  # the clock of the file system goes on
        "second = w.scan()\n"
        "opened = []\n"
        "sys.addaudithook(lambda n, a: n == 'open' and opened.append(a[0]))\n"
        "third = w.scan()\n"
        "print(second.tree == third.tree, third.tree is second.tree)\n"
        "print(any('b.txt' in str(each) for each in opened))\n"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program, folder],
        check=False,
        capture_output=True,
        text=True,
    )

    assert ran.stdout.split() == ["True", "True", "False"], ran.stderr


def test_a_change_that_keeps_size_and_time_is_found(folder, workspace):
    """The inode's own time, which no program can set, gives it away."""
    write(folder / "a.txt", "one")
    backdate(folder / "a.txt")
    workspace.scan()

    (folder / "a.txt").write_text("two")
    backdate(folder / "a.txt")

    assert content(workspace.scan(), "a.txt") == b"two"


def test_a_change_in_the_same_tick_of_the_clock_is_found(folder, workspace):
    path = folder / "a.txt"

    for turn in range(300):
        path.write_text(f"{turn:04}")
        assert content(workspace.scan(), "a.txt") == f"{turn:04}".encode()


def test_what_a_shell_command_changed_is_tracked(folder, workspace):
    write(folder / "old.txt", "old")
    write(folder / "gone.txt")
    before = workspace.scan()

    command = "echo new > old.txt; rm gone.txt; mkdir made; echo hi > made/file"
    subprocess.run(["sh", "-c", command], cwd=folder, check=True)

    after = workspace.scan()
    assert names(after) == ["made/file", "old.txt"]
    assert content(after, "old.txt") == b"new\n"
    assert before.tree.entries[b"old.txt"] != after.tree.entries[b"old.txt"]


def test_the_index_is_a_cache(folder):
    for number in range(3000):
        write(folder / f"d{number % 7}" / f"{number}.txt", str(number))
    first = Workspace(folder).scan()
    index = folder / ".holdfast" / "index"

    whole = index.read_bytes()
    for damaged in (b"", whole[:-5], whole[:100] + b"?" + whole[101:], b"nonsense"):
        index.write_bytes(damaged)
        assert Workspace(folder).scan().tree == first.tree
    index.unlink()
    assert Workspace(folder).scan().tree == first.tree
    index.write_bytes(whole)
    assert Workspace(folder).scan().tree == first.tree


def test_an_index_of_another_version_is_not_believed(folder, monkeypatch):
    write(folder / "large.txt", "x" * (1 << 21))  # so that an index is worth writing
    wait_for_the_clock(folder)
    Workspace(folder).scan()
    index = folder / ".holdfast" / "index"
    first, rest = index.read_bytes().split(b"\n", 1)
    words, version = first.rsplit(b" ", 1)
    opened, real = [], os.open

    def noting(path, *args, **kwargs):
        opened.append(path)
        return real(path, *args, **kwargs)

    spaces = {number: Workspace(folder) for number in range(1, int(version) + 2)}
    found = {}
    monkeypatch.setattr(os, "open", noting)
    for number, workspace in spaces.items():
        index.write_bytes(b"%b %d\n%b" % (words, number, rest))
        opened.clear()
        workspace.scan()
        found[number] = "large.txt" in opened

    assert found == {number: number != int(version) for number in found}


def test_an_index_of_other_rules_is_not_believed(folder):
    for number in range(2500):
        write(folder / f"{number}.txt")
    assert len(Workspace(folder).scan().tree.entries) == 2500

    assert names(Workspace(folder, ignore=["*.txt"]).scan()) == []


# --- rules ----------------------------------------------------------------------------


def test_rules_are_those_of_git_in_every_folder(folder, workspace):
    write(folder / ".gitignore", "*.log\nbuild/\n!keep.log\n/top.txt\n")
    write(folder / "sub" / ".gitignore", "!wanted.log\nlocal\n")
    for name in ("a.log", "keep.log", "build/x", "top.txt", "sub/top.txt"):
        write(folder / name)
    for name in ("sub/wanted.log", "sub/other.log", "sub/local", "local", "sub/build"):
        write(folder / name)

    assert names(workspace.scan()) == [
        ".gitignore",
        "keep.log",
        "local",
        "sub/.gitignore",
        "sub/build",
        "sub/top.txt",
        "sub/wanted.log",
    ]


def test_defaults_leave_out_what_tools_make_and_can_be_overruled(folder, workspace):
    for name in (".git/HEAD", "node_modules/x/y.js", ".venv/a", "p/__pycache__/c.pyc"):
        write(folder / name)
    write(folder / "main.py")
    assert names(workspace.scan()) == ["main.py", "p"]

    write(folder / ".holdfastignore", "!node_modules/\n")

    assert "node_modules/x/y.js" in names(workspace.scan())


def test_patterns_of_the_program_win_over_all_files(folder):
    write(folder / ".gitignore", "!secret\n")
    write(folder / "secret")

    assert names(Workspace(folder, ignore=["secret"]).scan()) == [".gitignore"]


def test_changed_rules_apply_to_files_that_are_known(folder, workspace):
    for name in ("a.txt", "sub/b.txt", "sub/c.md"):
        write(folder / name)
    workspace.scan()

    write(folder / ".gitignore", "*.txt\n")
    assert names(workspace.scan()) == [".gitignore", "sub/c.md"]

    (folder / ".gitignore").unlink()
    assert names(workspace.scan()) == ["a.txt", "sub/b.txt", "sub/c.md"]


def test_the_rules_in_force_are_part_of_the_tree(folder):
    write(folder / "sub" / ".gitignore", "# why\n*.log\n")

    rules = Workspace(folder, ignore=["secret"]).scan().tree.rules

    assert "node_modules/" in rules
    assert rules[-2:] == ("# sub/.gitignore", "*.log")
    assert "secret" in rules


def test_a_name_that_was_ignored_as_a_folder_is_taken_as_a_file(folder, workspace):
    write(folder / ".gitignore", "out/\n")
    write(folder / "out" / "x")
    assert names(workspace.scan()) == [".gitignore"]

    (folder / "out" / "x").unlink()
    (folder / "out").rmdir()
    write(folder / "out")

    assert names(workspace.scan()) == [".gitignore", "out"]


def test_a_nested_repository_is_an_ordinary_folder_without_its_git(folder, workspace):
    """Others rename it, or switch the feature off: cline #4388, roo PR #4509."""
    for place in (folder, folder / "vendor" / "lib"):
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "-q", place], check=True)
        write(place / "code.py", str(place))

    snapshot = workspace.scan()

    assert names(snapshot) == ["code.py", "vendor/lib/code.py"]
    assert (folder / "vendor" / "lib" / ".git" / "HEAD").exists()


def test_an_ignored_file_may_have_rules(folder):
    write(folder / ".gitignore", "*.log\n")
    write(folder / "a.log")
    write(folder / "b")
    workspace = Workspace(folder, ignore=[".gitignore"])

    assert names(workspace.scan()) == ["b"]
    assert names(workspace.scan()) == ["b"]


# --- what is left out -----------------------------------------------------------------


def test_sockets_pipes_and_devices_are_left_out_and_listed(folder, workspace):
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(folder)  # the path of a socket must be short
        listener.bind("socket")
        expected = {"pipe": "pipe", "socket": "socket"}
        if os.geteuid() == 0:
            os.mknod(folder / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
            expected["null"] = "device"

        assert omitted(workspace.scan()) == expected
        assert names(workspace.scan()) == []


def test_large_files_are_left_out_and_listed(folder):
    write(folder / "large", "x" * 101)
    write(folder / "small", "x" * 100)

    snapshot = Workspace(folder, largest_file=100).scan()

    assert names(snapshot) == ["small"]
    assert omitted(snapshot) == {"large": "larger than 100 bytes"}


def test_files_beyond_the_limits_of_number_and_bytes_are_listed(folder):
    for number in range(10):
        write(folder / str(number), "x" * 10)

    by_number = Workspace(folder, most_files=4).scan()
    by_bytes = Workspace(folder, most_bytes=75).scan()

    assert len(by_number.tree.entries) == 4
    assert [*omitted(by_number).values()] == ["more than 4 files"] * 6
    assert len(by_bytes.tree.entries) == 7
    assert [*omitted(by_bytes).values()] == ["more than 75 bytes in all"] * 3


UNPRIVILEGED = """
import os, sys
from holdfast.workspace import Workspace
import pathspec, hashlib, fcntl
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
snapshot = Workspace(sys.argv[1]).scan()
print(sorted(map(os.fsdecode, snapshot.tree.entries)))
print({os.fsdecode(o.path): o.reason for o in snapshot.tree.omitted})
"""


def test_unreadable_files_and_folders_are_listed():
    """Root can read all: a process that gives up its rights scans the folder."""
    with tempfile.TemporaryDirectory() as place:
        top = Path(place)
        top.chmod(0o755)
        write(top / "secret.txt", mode=0)
        write(top / "closed" / "inside.txt")
        write(top / "plain.txt")
        (top / "closed").chmod(0)

        ran = subprocess.run(
            [sys.executable, "-c", UNPRIVILEGED, top],
            check=False,
            capture_output=True,
            text=True,
        )
        (top / "closed").chmod(0o755)

    assert ran.stdout.splitlines() == [
        "['plain.txt']",
        "{'closed': 'unreadable', 'secret.txt': 'unreadable'}",
    ], ran.stderr


def test_a_file_that_cannot_be_read_any_more_leaves_the_tree_and_is_listed(
    folder, workspace, monkeypatch
):
    write(folder / "a.txt")
    workspace.scan()
    write(folder / "a.txt", "changed")
    real = os.open

    def fails(path, *args, **kwargs):
        if path == "a.txt":
            raise OSError(5, "Input/output error")
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", fails)
    snapshot = workspace.scan()

    assert names(snapshot) == []
    assert omitted(snapshot) == {"a.txt": "unreadable: Input/output error"}


def test_a_file_that_vanishes_during_the_walk_is_listed(folder, workspace, monkeypatch):
    write(folder / "a.txt")
    write(folder / "b.txt")
    real = os.open

    def vanishing(path, *args, **kwargs):
        if path == "a.txt":
            (folder / "a.txt").unlink()
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", vanishing)
    snapshot = workspace.scan()

    assert names(snapshot) == ["b.txt"]
    assert omitted(snapshot) == {"a.txt": "vanished"}


def test_a_folder_that_is_removed_under_the_walk_is_listed(
    folder, workspace, monkeypatch
):
    write(folder / "sub" / "a.txt")
    workspace.scan()
    real = os.open

    def vanishing(path, *args, **kwargs):
        if path == "sub":
            (folder / "sub" / "a.txt").unlink()
            (folder / "sub").rmdir()
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", vanishing)
    snapshot = workspace.scan()

    assert names(snapshot) == []
    assert omitted(snapshot) == {"sub": "vanished"}


def test_a_file_that_changes_while_it_is_read_is_read_again(
    folder, workspace, monkeypatch
):
    path = folder / "a.txt"
    write(path, "first")
    real, turns = os.pread, [b"second", b"third!"]

    def changing(descriptor, size, place):
        data = real(descriptor, size, place)
        if data in (b"first", b"second") and turns:
            path.write_bytes(turns.pop(0))
        return data

    monkeypatch.setattr(os, "pread", changing)
    snapshot = workspace.scan()

    assert content(snapshot, "a.txt") == b"third!"


def test_a_file_that_never_rests_is_listed(folder, workspace, monkeypatch):
    path = folder / "a.txt"
    write(path, "first")
    real = os.pread

    def changing(descriptor, size, place):
        data = real(descriptor, size, place)
        if data.startswith(b"first"):
            path.write_bytes(data + b"!")
        return data

    monkeypatch.setattr(os, "pread", changing)
    snapshot = workspace.scan()

    assert names(snapshot) == []
    assert omitted(snapshot) == {"a.txt": "changed while it was read"}


def test_a_folder_replaced_by_a_link_during_the_walk_is_not_followed(
    folder, workspace, tmp_path, monkeypatch
):
    outside = tmp_path / "outside"
    write(outside / "secret.txt")
    write(folder / "sub" / "a.txt")
    real = os.open

    def planting(path, *args, **kwargs):
        if path == "sub":
            (folder / "sub").rename(tmp_path / "elsewhere")
            (folder / "sub").symlink_to(outside)
            monkeypatch.undo()
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", planting)
    snapshot = workspace.scan()

    assert names(snapshot) == []
    assert omitted(snapshot) == {"sub": "vanished"}


# --- odd files ------------------------------------------------------------------------


def test_names_that_are_not_utf8_survive(folder, workspace):
    odd = os.fsencode(folder) + b"/caf\xe9"
    os.mkdir(odd)
    with open(odd + b"/\xff.txt", "wb") as file:
        file.write(b"odd")

    snapshot = workspace.scan()

    assert [*snapshot.tree.entries] == [b"caf\xe9/\xff.txt"]
    assert b"".join(snapshot.content(b"caf\xe9/\xff.txt")) == b"odd"
    assert workspace.scan().tree == snapshot.tree


def test_odd_names_are_read_again_by_the_next_process(folder):
    for number in range(2500):
        write(folder / f"{number}.txt")
    with open(os.fsencode(folder) + b"/\xff.txt", "wb") as file:
        file.write(b"odd")
    first = Workspace(folder).scan()

    assert (folder / ".holdfast" / "index").exists()
    assert Workspace(folder).scan().tree == first.tree


def test_a_hundred_levels_deep(folder, workspace):
    deep = folder.joinpath(*["d"] * 100)
    write(deep / "bottom.txt")

    assert names(workspace.scan()) == ["d/" * 100 + "bottom.txt"]


def test_folders_that_are_too_deep_are_listed(folder, workspace):
    write(folder.joinpath(*["d"] * 210) / "bottom.txt")

    snapshot = workspace.scan()

    assert [*omitted(snapshot).values()] == ["more than 200 folders deep"]


def test_hard_links_are_files_of_their_own(folder, workspace):
    write(folder / "a", "same")
    os.link(folder / "a", folder / "b")

    entries = workspace.scan().tree.entries

    assert entries[b"a"].digest == entries[b"b"].digest


def test_a_sparse_file_needs_no_memory_and_no_disk(folder):
    size = (2 << 30) if THOROUGH else (200 << 20)
    with open(folder / "sparse", "wb") as file:
        file.truncate(size)
    program = (
        "import resource, sys\n"
        "from holdfast.workspace import Workspace\n"
        "w = Workspace(sys.argv[1], largest_file=4 << 30, most_bytes=4 << 30)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "snapshot = w.scan()\n"
        "size = sum(map(len, snapshot.content(b'sparse')))\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "used = resource.getrusage(resource.RUSAGE_SELF).ru_oublock\n"
        "print(size, after - before < 100_000, used < 1_000)\n"
    )

    by_default = Workspace(folder).scan()
    ran = subprocess.run(
        [sys.executable, "-c", program, folder],
        check=False,
        capture_output=True,
        text=True,
    )

    assert omitted(by_default) == {"sparse": "larger than 67108864 bytes"}
    assert ran.stdout.split() == [str(size), "True", "True"], ran.stderr


def test_a_large_file_that_changes_after_the_scan_is_still_given_as_it_was(
    folder, workspace
):
    data = os.urandom(3 << 20)
    (folder / "large").write_bytes(data)

    snapshot = workspace.scan()
    (folder / "large").write_bytes(b"other")

    assert content(snapshot, "large") == data


def test_a_known_file_that_changed_after_the_scan_is_a_conflict(folder, workspace):
    write(folder / "a.txt", "one")
    wait_for_the_clock(folder)
    workspace.scan()
    snapshot = workspace.scan()

    write(folder / "a.txt", "two")

    with pytest.raises(holdfast.Conflict, match=r"a\.txt") as caught:
        content(snapshot, "a.txt")
    assert caught.value.code == "file_changed"


def test_a_file_becomes_a_folder_and_back(folder, workspace):
    write(folder / "a")
    assert names(workspace.scan()) == ["a"]
    (folder / "a").unlink()
    write(folder / "a" / "b")
    assert names(workspace.scan()) == ["a/b"]
    (folder / "a" / "b").unlink()
    assert names(workspace.scan()) == ["a"]
    assert workspace.scan().tree.entries[b"a"].is_directory
    (folder / "a").rmdir()
    (folder / "a").symlink_to("b")
    assert workspace.scan().tree.entries[b"a"].is_link


def test_one_folder_gone_and_another_made_is_noticed(folder, workspace):
    write(folder / "a" / "x")
    workspace.scan()
    (folder / "a").rename(folder / "b")

    assert names(workspace.scan()) == ["b/x"]


# --- where a workspace may be ---------------------------------------------------------


def test_the_home_folder_and_the_root_are_refused(tmp_path, monkeypatch):
    home = tmp_path / "home" / "me"
    (home / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))

    for path in (home, home.parent, "/", "~/../me"):
        with pytest.raises(holdfast.Unsupported) as caught:
            Workspace(os.path.expanduser(path))
        assert caught.value.code == "workspace_too_wide"
    assert Workspace(home / "project").scan().tree.entries == {}


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(holdfast.NotFound, match="nowhere"):
        Workspace(tmp_path / "nowhere")


def test_a_link_in_the_place_of_the_own_folder_is_refused(folder, tmp_path):
    (folder / ".holdfast").symlink_to(tmp_path)

    with pytest.raises(holdfast.Unsupported) as caught:
        Workspace(folder)
    assert caught.value.code == "workspace_blocked"


def test_what_it_keeps_for_itself_is_in_no_snapshot_and_not_for_git(folder, workspace):
    write(folder / ".holdfastignore", "!.holdfast/\n")
    write(folder / "inner" / ".holdfast" / "index")

    assert names(workspace.scan()) == [".holdfastignore", "inner"]
    assert (folder / ".holdfast" / ".gitignore").read_text() == "*\n"


def test_without_the_extra_the_error_names_what_to_install(folder):
    program = (
        "import sys; sys.modules['pathspec'] = None\n"
        "import holdfast\n"
        "try:\n    holdfast.Workspace(sys.argv[1])\n"
        "except holdfast.Unsupported as error:\n    print(error.code, error)\n"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program, folder],
        check=False,
        capture_output=True,
        text=True,
    )

    assert ran.stdout.startswith("missing_extra"), ran.stderr
    assert "pip install 'holdfast[workspace]'" in ran.stdout
