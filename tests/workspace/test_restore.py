"""Restoring the files of a checkpoint: what is brought back, what is never touched."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import subprocess
from pathlib import Path

import pytest

import holdfast
from holdfast.workspace import Workspace
from inner.workspace import Disk
from support.workspaces import files_of, write


@pytest.fixture
def saved(folder, workspace, thread):
    """Two checkpoints: the second has a changed, a new and no removed file."""
    write(folder / "code.py", "one", 0o755)
    write(folder / "sub" / "gone.txt", "gone")
    (folder / "link").symlink_to("code.py")
    first = thread.save({"turn": 1}, files=workspace)
    write(folder / "code.py", "two")
    (folder / "sub" / "gone.txt").unlink()
    (folder / "sub").rmdir()
    (folder / "link").unlink()
    write(folder / "new" / "made.txt", "made")
    second = thread.save({"turn": 2}, files=workspace)
    return first, second


FIRST = {"code.py": (0o755, "one"), "sub/gone.txt": (0o644, "gone"), "link": "code.py"}
SECOND = {"code.py": (0o755, "two"), "new/made.txt": (0o644, "made")}


def test_files_come_back_with_modes_and_links_and_the_state_stays(
    folder, workspace, thread, saved
):
    report = workspace.restore(thread, saved[0])

    assert files_of(folder) == FIRST
    assert sorted(report.written) == ["code.py", "link", "sub/gone.txt"]
    assert report.removed == ("new/made.txt",)
    assert thread.load() == {"turn": 2}
    assert thread.files().entries == workspace.scan().tree.entries


def test_state_and_files_come_back_together_and_undo_brings_both_forward(
    folder, workspace, thread, saved
):
    workspace.restore(thread, saved[0], state=True)
    assert (files_of(folder), thread.load()) == (FIRST, {"turn": 1})

    workspace.undo(thread)
    assert (files_of(folder), thread.load()) == (SECOND, {"turn": 2})

    workspace.undo(thread)
    assert (files_of(folder), thread.load()) == (FIRST, {"turn": 1})


def test_a_preview_changes_nothing_and_lists_conflicts(
    folder, workspace, thread, saved
):
    write(folder / "code.py", "mine")
    before, head = files_of(folder), thread.head

    report = workspace.restore(thread, saved[0], dry_run=True)

    assert not report.done
    assert report.conflicts == ("code.py",)
    assert report.removed == ("new/made.txt",)
    assert (files_of(folder), thread.head) == (before, head)


def test_files_changed_since_the_last_snapshot_are_a_conflict_with_all_paths(
    folder, workspace, thread, saved
):
    write(folder / "code.py", "mine")
    write(folder / "new" / "made.txt", "mine too")
    before, head = files_of(folder), thread.head

    with pytest.raises(holdfast.Conflict) as caught:
        workspace.restore(thread, saved[0])

    assert caught.value.code == "files_changed"
    assert caught.value.paths == ("code.py", "new/made.txt")
    assert (files_of(folder), thread.head) == (before, head)


def test_force_restores_changed_files_and_undo_brings_them_back(
    folder, workspace, thread, saved
):
    write(folder / "code.py", "mine")

    report = workspace.restore(thread, saved[0], force=True)
    assert files_of(folder) == FIRST
    assert report.recovery.kind == "recovery"

    workspace.undo(thread)
    assert files_of(folder) == SECOND | {"code.py": (0o755, "mine")}


def test_a_removed_file_is_a_conflict_only_where_it_matters(
    folder, workspace, thread, saved
):
    (folder / "new" / "made.txt").unlink()  # the target has none: nothing to do

    workspace.restore(thread, saved[0])

    assert files_of(folder) == FIRST | {"new": "folder"}


def test_only_the_given_paths_are_restored(folder, workspace, thread, saved):
    report = workspace.restore(thread, saved[0], paths=["code.py", folder / "sub"])

    assert files_of(folder) == SECOND | {
        "code.py": (0o755, "one"),
        "sub/gone.txt": (0o644, "gone"),
    }
    assert sorted(report.written) == ["code.py", "sub/gone.txt"]


def test_a_path_that_no_snapshot_has_is_named(workspace, thread, saved):
    with pytest.raises(holdfast.NotFound, match=r"nope\.txt"):
        workspace.restore(thread, saved[0], paths=["nope.txt"])
    with pytest.raises(holdfast.NotFound, match="not below"):
        workspace.restore(thread, saved[0], paths=["../elsewhere"])


def test_a_restore_with_paths_and_state_keeps_the_other_files_in_a_checkpoint(
    folder, workspace, thread, saved
):
    workspace.restore(thread, saved[0], paths=["code.py"], state=True)

    assert thread.load() == {"turn": 1}
    assert thread.files().entries == workspace.scan().tree.entries
    workspace.undo(thread)
    assert (files_of(folder), thread.load()) == (SECOND, {"turn": 2})


def test_nothing_to_restore_is_fine(folder, workspace, thread, saved):
    report = workspace.restore(thread, saved[1])

    assert (report.written, report.removed) == ((), ())
    assert files_of(folder) == SECOND


def test_the_next_conflict_is_found_after_a_restore_too(
    folder, workspace, thread, saved
):
    workspace.restore(thread, saved[0])
    write(folder / "code.py", "mine")

    with pytest.raises(holdfast.Conflict):
        workspace.undo(thread)
    assert (folder / "code.py").read_text() == "mine"


def test_without_a_restore_there_is_nothing_to_undo(workspace, thread, saved):
    with pytest.raises(holdfast.NotFound, match="recovery checkpoint"):
        workspace.undo(thread)


def test_a_checkpoint_without_files_is_named(workspace, thread):
    bare = thread.save({"turn": 1})

    with pytest.raises(holdfast.NotFound) as caught:
        workspace.restore(thread, bare)
    assert caught.value.code == "no_files"


# --- into another folder --------------------------------------------------------------


def test_files_are_written_into_another_folder(
    folder, workspace, thread, saved, tmp_path
):
    other = tmp_path / "branch"

    report = workspace.restore(thread, saved[0], into=other)

    assert files_of(other) == FIRST
    assert files_of(folder) == SECOND
    assert thread.head == saved[1]
    assert report.recovery is None


def test_nothing_in_another_folder_is_overwritten_or_removed(
    workspace, thread, saved, tmp_path
):
    other = tmp_path / "other"
    write(other / "code.py", "theirs")
    write(other / "theirs.txt", "theirs")

    for force in (False, True):
        with pytest.raises(holdfast.Conflict) as caught:
            workspace.restore(thread, saved[0], into=other, force=force)
        assert caught.value.code == "files_in_the_way"
        assert caught.value.paths == ("code.py",)
    assert files_of(other) == {
        "code.py": (0o644, "theirs"),
        "theirs.txt": (0o644, "theirs"),
    }

    workspace.restore(thread, saved[0], into=other, paths=["sub"])
    assert (other / "sub" / "gone.txt").read_text() == "gone"


def test_the_state_is_not_restored_into_a_folder(workspace, thread, saved, tmp_path):
    with pytest.raises(holdfast.Unsupported):
        workspace.restore(thread, saved[0], into=tmp_path / "other", state=True)


# --- how others failed ----------------------------------------------------------------


def test_what_a_shell_command_changed_is_brought_back(folder, workspace, thread):
    """claude-code #94657, #87575: only edits of the editor were tracked."""
    write(folder / "src" / "main.py", "good")
    good = thread.save({}, files=workspace)
    command = "sed -i s/good/bad/ src/main.py; mv src lib; chmod 600 lib/main.py"
    subprocess.run(["sh", "-c", command], cwd=folder, check=True)
    thread.save({}, files=workspace)

    workspace.restore(thread, good)

    assert files_of(folder) == {"src/main.py": (0o644, "good")}


def test_nested_repositories_stay_repositories(folder, workspace, thread):
    """cline #4388, roo PR #4509: they were renamed, or the feature switched off."""
    inner = folder / "vendor"
    write(inner / "code.py", "one")
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=inner, check=True)
    first = thread.save({}, files=workspace)
    write(inner / "code.py", "two")
    thread.save({}, files=workspace)

    workspace.restore(thread, first)

    status = ["git", "status", "--porcelain"]
    ran = subprocess.run(status, cwd=inner, check=True, capture_output=True, text=True)
    assert (inner / "code.py").read_text() == "one"
    assert ran.stdout == "A  code.py\n"


def test_a_restore_never_deletes_what_it_never_recorded(
    folder, workspace, thread, saved
):
    """gemini-cli #13331, cline #14367."""
    write(folder / "notes.txt", "mine, and in no snapshot")
    write(folder / "new" / "beside.txt", "in a folder that goes")
    write(folder / ".env", "secret")
    write(folder / "node_modules" / "x.js", "ignored")

    workspace.restore(thread, saved[0], force=True, state=True)

    assert (folder / "notes.txt").exists()
    assert (folder / "new" / "beside.txt").exists()
    assert (folder / ".env").exists()
    assert (folder / "node_modules" / "x.js").exists()


def test_a_quiet_turn_reads_and_stores_nothing(folder, workspace, thread):
    """cline #13131, pi-code PR #252, zed #62564: 90 s a turn, gigabytes of store."""
    for number in range(200):
        write(folder / f"{number}.txt", str(number))
    thread.save({"turn": 1}, files=workspace)
    before = thread.files()

    thread.save({"turn": 2}, files=workspace)

    assert thread.files() == before


class FailingDisk(Disk):
    """A disk on which one kind of change fails at its n-th time."""

    def __init__(self, kind, at=1, error=28):
        self.left = at

        def failing(*args, **kwargs):
            self.left -= 1
            if self.left == 0:
                raise OSError(error, os.strerror(error))
            return getattr(Disk, kind)(self, *args, **kwargs)

        setattr(self, kind, failing)


@pytest.mark.parametrize("state", [False, True])
@pytest.mark.parametrize(
    ("kind", "at"), [("rename", 2), ("rename", 3), ("link", 2), ("mkdir", 4)]
)
def test_no_half_of_a_restore_after_an_error(
    folder, workspace, thread, saved, kind, at, state
):
    """gemini-cli #11243."""
    workspace._disk = FailingDisk(kind, at)

    with pytest.raises(holdfast.HoldfastError) as caught:
        workspace.restore(thread, saved[0], state=state)

    assert caught.value.code == "disk_full"
    assert (files_of(folder), thread.load()) == (SECOND, {"turn": 2})
    workspace._disk = Disk()
    workspace.restore(thread, saved[0], state=state)
    assert files_of(folder) == FIRST


def test_files_left_out_of_a_snapshot_are_not_deleted_by_restoring_it(folder, thread):
    """claudette PR #152: skipped silently at the save, deleted at the restore."""
    small = Workspace(folder, largest_file=10)
    write(folder / "large.bin", "x" * 11)
    write(folder / "small.txt", "s")
    first = thread.save({}, files=small)
    write(folder / "large.bin", "y" * 5)  # now it is recorded
    thread.save({}, files=small)

    report = small.restore(thread, first)

    assert (folder / "large.bin").read_text() == "y" * 5
    assert report.left == (("large.bin", "larger than 10 bytes"),)


def test_files_that_were_ignored_then_are_not_deleted_by_restoring_then(
    folder, workspace, thread
):
    write(folder / ".gitignore", "*.log\n")
    write(folder / "out.log", "log")
    first = thread.save({}, files=workspace)
    (folder / ".gitignore").unlink()
    thread.save({}, files=workspace)

    report = workspace.restore(thread, first)

    assert (folder / "out.log").read_text() == "log"
    assert report.left == (("out.log", "ignored"),)


def test_files_that_are_ignored_now_are_not_overwritten(folder, workspace, thread):
    write(folder / "out.log", "then")
    first = thread.save({}, files=workspace)
    write(folder / ".gitignore", "*.log\n")
    write(folder / "out.log", "now, and in no snapshot")
    thread.save({}, files=workspace)

    for force in (False, True):
        with pytest.raises(holdfast.Conflict) as caught:
            workspace.restore(thread, first, force=force)
        assert caught.value.paths == ("out.log",)
    assert (folder / "out.log").read_text() == "now, and in no snapshot"


class PlantingDisk(Disk):
    """Before the n-th link or rename a folder is replaced by a symbolic link."""

    def __init__(self, place: Path, target: Path, at: int):
        self.place, self.target, self.left = place, target, at

    def _plant(self):
        self.left -= 1
        if self.left == 0 and not self.place.is_symlink():
            if self.place.exists():
                self.place.rename(self.place.with_name("moved"))
            self.place.symlink_to(self.target)

    def link(self, *args):
        self._plant()
        super().link(*args)

    def rename(self, *args):
        self._plant()
        super().rename(*args)


@pytest.mark.parametrize("at", range(1, 9))
@pytest.mark.parametrize("place", ["sub", "new"])
def test_a_symbolic_link_planted_during_the_restore_is_not_followed(
    folder, workspace, thread, saved, tmp_path, place, at
):
    """cindy PR #1555."""
    outside = tmp_path / "outside"
    write(outside / "gone.txt", "outside")
    write(outside / "made.txt", "outside")
    workspace._disk = PlantingDisk(folder / place, outside, at)

    with contextlib.suppress(holdfast.HoldfastError):
        workspace.restore(thread, saved[0])

    assert files_of(outside) == {
        "gone.txt": (0o644, "outside"),
        "made.txt": (0o644, "outside"),
    }


def test_a_link_in_the_place_of_a_folder_is_in_the_way(
    folder, workspace, thread, saved, tmp_path
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "sub").symlink_to(outside)

    with pytest.raises(holdfast.Conflict) as caught:
        workspace.restore(thread, saved[0], force=True)

    assert caught.value.code == "files_in_the_way"
    assert caught.value.paths == ("sub",)
    assert files_of(outside) == {}


# --- kinds of files -------------------------------------------------------------------


def test_a_file_replaced_by_a_folder_and_back(folder, workspace, thread):
    write(folder / "a", "file")
    as_file = thread.save({}, files=workspace)
    (folder / "a").unlink()
    write(folder / "a" / "b", "inside")
    as_folder = thread.save({}, files=workspace)

    workspace.restore(thread, as_file)
    assert files_of(folder) == {"a": (0o644, "file")}
    workspace.restore(thread, as_folder)
    assert files_of(folder) == {"a/b": (0o644, "inside")}


def test_a_folder_with_unrecorded_files_is_not_replaced_by_a_file(
    folder, workspace, thread
):
    write(folder / "a", "file")
    as_file = thread.save({}, files=workspace)
    (folder / "a").unlink()
    write(folder / "a" / "b", "inside")
    write(folder / "a" / "__pycache__" / "c.pyc", "ignored")
    thread.save({}, files=workspace)

    with pytest.raises(holdfast.Conflict) as caught:
        workspace.restore(thread, as_file, force=True)

    assert caught.value.paths == ("a/__pycache__/c.pyc",)
    assert (folder / "a" / "b").read_text() == "inside"


def test_renames_that_change_only_the_case(folder, workspace, thread):
    write(folder / "README", "text")
    upper = thread.save({}, files=workspace)
    (folder / "README").rename(folder / "readme")
    lower = thread.save({}, files=workspace)

    workspace.restore(thread, upper)
    assert files_of(folder) == {"README": (0o644, "text")}
    workspace.restore(thread, lower)
    assert files_of(folder) == {"readme": (0o644, "text")}


def test_empty_folders_come_and_go(folder, workspace, thread):
    (folder / "a" / "b").mkdir(parents=True)
    with_folder = thread.save({}, files=workspace)
    (folder / "a" / "b").rmdir()
    (folder / "a").rmdir()
    without = thread.save({}, files=workspace)

    workspace.restore(thread, with_folder)
    assert files_of(folder) == {"a/b": "folder"}
    workspace.restore(thread, without)
    assert files_of(folder) == {}


def test_permissions_of_files_and_closed_folders_come_back(folder, workspace, thread):
    write(folder / "private" / "key", "k", 0o600)
    (folder / "private").chmod(0o700)
    first = thread.save({}, files=workspace)
    (folder / "private" / "key").chmod(0o644)
    (folder / "private").chmod(0o755)
    thread.save({}, files=workspace)

    workspace.restore(thread, first)
    assert (folder / "private").stat().st_mode & 0o777 == 0o700
    assert (folder / "private" / "key").stat().st_mode & 0o777 == 0o600

    workspace.undo(thread)
    assert (folder / "private").stat().st_mode & 0o777 == 0o755
    assert (folder / "private" / "key").stat().st_mode & 0o777 == 0o644


def test_names_that_are_not_utf8_come_back(folder, workspace, thread):
    path = os.fsencode(folder) + b"/caf\xe9"
    with open(path, "wb") as file:
        file.write(b"odd")
    first = thread.save({}, files=workspace)
    os.unlink(path)
    thread.save({}, files=workspace)

    workspace.restore(thread, first)

    with open(path, "rb") as file:
        assert file.read() == b"odd"


def test_hard_links_are_not_written_through(folder, workspace, thread, tmp_path):
    write(folder / "a", "one")
    first = thread.save({}, files=workspace)
    os.link(folder / "a", tmp_path / "outside")
    write(folder / "a", "two")
    thread.save({}, files=workspace)

    workspace.restore(thread, first)

    assert (folder / "a").read_text() == "one"
    assert (tmp_path / "outside").read_text() == "two"


def test_a_hundred_levels_deep_come_back(folder, workspace, thread):
    deep = folder.joinpath(*["d"] * 100)
    write(deep / "bottom.txt", "deep")
    first = thread.save({}, files=workspace)
    (deep / "bottom.txt").unlink()
    for place in (deep, *deep.parents):
        if place != folder and place.is_relative_to(folder):
            place.rmdir()
    thread.save({}, files=workspace)

    workspace.restore(thread, first)

    assert (deep / "bottom.txt").read_text() == "deep"


def test_two_workspaces_in_one_store_do_not_know_one_another(tmp_path, threads):
    one, two = Workspace(_made(tmp_path / "1")), Workspace(_made(tmp_path / "2"))
    write(tmp_path / "1" / "a", "1")
    write(tmp_path / "2" / "a", "2")
    first = threads("one").save({}, files=one)
    threads("two").save({}, files=two)
    write(tmp_path / "1" / "a", "changed")
    threads("one").save({}, files=one)

    one.restore(threads("one"), first)

    assert (tmp_path / "1" / "a").read_text() == "1"
    assert (tmp_path / "2" / "a").read_text() == "2"
    with pytest.raises(holdfast.NotFound):
        two.undo(threads("two"))


def _made(path):
    path.mkdir()
    return path


def test_a_file_that_appears_in_the_way_meanwhile_is_kept(
    folder, workspace, thread, saved
):
    class Racing(Disk):
        def mkdir(self, at, name, mode=0o777):
            super().mkdir(at, name, mode)
            if name == b"sub":
                write(folder / "sub" / "gone.txt", "theirs")

    workspace._disk = Racing()

    report = workspace.restore(thread, saved[0])

    assert files_of(folder) == FIRST
    [kept] = report.kept
    assert (folder / ".holdfast" / kept).read_text() == "theirs"


def test_a_file_that_changes_while_the_restore_is_prepared_is_a_conflict(
    folder, workspace, thread, saved
):
    class Racing(Disk):
        def write(self, *args):
            super().write(*args)
            write(folder / "code.py", "theirs")

    workspace._disk = Racing()

    with pytest.raises(holdfast.Conflict) as caught:
        workspace.restore(thread, saved[0])

    assert caught.value.paths == ("code.py",)
    assert (folder / "code.py").read_text() == "theirs"
    assert not (folder / ".holdfast" / "restore").exists()


def test_unknown_options_are_refused(workspace, thread, saved):
    with pytest.raises(TypeError, match="forced"):
        workspace.restore(thread, saved[0], forced=True)


# --- looks that fail ------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE], ids=errno.errorcode.get)
def test_a_look_that_fails_is_not_taken_for_nothing_there(
    folder, thread, saved, monkeypatch, code
):
    """A restore says what it could not look at, and leaves all as it was."""
    opened = os.open
    for broken in itertools.count(1):
        looks = itertools.count(1)

        def failing(path, flags, *args, looks=looks, broken=broken, **how):
            if how.get("dir_fd") is not None and next(looks) == broken:
                raise OSError(code, os.strerror(code), path)
            return opened(path, flags, *args, **how)

        workspace = Workspace(folder)
        with monkeypatch.context() as patched:
            patched.setattr(os, "open", failing)
            try:
                workspace.restore(thread, saved[0], state=True)
                is_done = True
            except holdfast.HoldfastError:
                is_done = False
        Workspace(folder)  # what could not be removed is removed by the next one
        found = (files_of(folder), thread.load())
        assert found in ((FIRST, {"turn": 1}), (SECOND, {"turn": 2})), broken
        assert found[0] == FIRST or not is_done, broken
        if found[0] == FIRST:
            workspace.undo(thread)
        if next(looks) <= broken:
            break
    assert broken > 50


def test_a_recorded_file_on_a_broken_disk_stops_the_restore(
    folder, workspace, thread, saved, monkeypatch
):
    opened = os.open

    def failing(path, flags, *args, **how):
        if path == "new":
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return opened(path, flags, *args, **how)

    monkeypatch.setattr(os, "open", failing)
    with pytest.raises(
        holdfast.HoldfastError, match=r"new in .* is unreadable"
    ) as found:
        workspace.restore(thread, saved[0])

    assert found.value.code == "io_error"
    monkeypatch.undo()
    assert files_of(folder) == SECOND


def test_a_folder_whose_rules_cannot_be_read_is_not_saved_without_them(
    folder, workspace, monkeypatch
):
    write(folder / ".gitignore", "secret\n")
    write(folder / "secret")
    opened = os.open

    def failing(path, flags, *args, **how):
        if path == ".gitignore":
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return opened(path, flags, *args, **how)

    monkeypatch.setattr(os, "open", failing)
    with pytest.raises(holdfast.HoldfastError, match=r"\.gitignore in .*Input/output"):
        workspace.scan()
