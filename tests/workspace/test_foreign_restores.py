"""Restores under way that a folder brings along: only this user's own are finished."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

import holdfast
from holdfast.workspace import FileEntry, Workspace
from inner.workspace import (
    FOLDER,
    INTENT,
    FileChange,
    Intent,
    Step,
    encode_intent,
    make_secret,
    sealed,
)
from support.programs import ENVIRONMENT
from support.workspaces import files_of, write

KILLED = """
import os, sys, holdfast
from holdfast.workspace import Workspace
from inner.workspace import Disk

class Killing(Disk):
    def link(self, *args):
        super().link(*args)
        os._exit(9)

workspace = Workspace("project")
workspace._disk = Killing()
with holdfast.open("agents.db") as store:
    workspace.restore(store.thread("agent"), "@1", state=True)
"""


@pytest.fixture
def killed(tmp_path, folder):
    """A folder whose restore was killed after its intent was written."""
    write(folder / "code.py", "one")
    with holdfast.open(tmp_path / "agents.db") as store:
        thread, workspace = store.thread("agent"), Workspace(folder)
        thread.save({"turn": 1}, files=workspace)
        write(folder / "code.py", "two")
        thread.save({"turn": 2}, files=workspace)
    done = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=tmp_path, env=ENVIRONMENT, check=False
    )
    assert done.returncode == 9
    assert (folder / ".holdfast" / "restore" / "intent").exists()
    return folder


def forge(folder, paths):
    """Put an attacker's intent into a folder, which would write some files."""
    stage = folder / ".holdfast" / "restore"
    (stage / "new").mkdir(parents=True)
    (stage / "old").mkdir()
    steps = []
    for number, path in enumerate(paths):
        (stage / "new" / str(number)).write_text("pwned")
        digest = hashlib.sha256(b"pwned").digest()
        change = FileChange(path, None, FileEntry(path, 0o100755, 5, digest))
        steps.append(Step(change, None, None))
    intent = Intent(steps=tuple(steps), made=(), removed=())
    make_secret()
    own = os.open(folder / ".holdfast", FOLDER)
    try:
        (stage / "intent").write_bytes(encode_intent(own, intent))
    finally:
        os.close(own)


def refused(call):
    with pytest.raises(holdfast.Conflict, match=r"\.holdfast/") as caught:
        call()
    return caught.value.code == "foreign_restore"


def test_a_restore_that_a_folder_brings_along_is_not_finished(
    folder, thread, tmp_path, monkeypatch
):
    workspace = Workspace(folder)
    with monkeypatch.context() as other:
        other.setenv("XDG_STATE_HOME", str(tmp_path / "other state"))
        forge(folder, [b"../.bashrc", b"inside"])
    write(folder / "code.py")

    assert refused(lambda: Workspace(folder))
    assert refused(lambda: thread.save({}, files=workspace))
    assert refused(lambda: workspace.restore(thread, "@"))
    assert not (tmp_path / ".bashrc").exists()
    assert files_of(folder) == {"code.py": (0o644, "x")}
    (folder / ".holdfast" / "restore").rename(tmp_path / "elsewhere")
    thread.save({}, files=Workspace(folder))
    assert list(thread.files()) == ["code.py"]


def test_a_restore_of_an_earlier_version_or_half_a_file_is_not_finished(folder):
    forge(folder, [b"inside"])
    intent = folder / ".holdfast" / "restore" / "intent"
    whole = intent.read_bytes()
    for data in (b"", whole[:-1], whole[48:], whole[:20] + b"x" + whole[21:]):
        intent.write_bytes(data)
        assert refused(lambda: Workspace(folder))
    assert files_of(folder) == {}
    intent.write_bytes(whole)
    Workspace(folder)
    assert set(files_of(folder)) == {"inside"}


@pytest.mark.parametrize("path", [b"../.bashrc", b"/x", b".holdfast/index", b"a//b"])
def test_the_paths_of_an_own_restore_are_checked_too(folder, tmp_path, path):
    forge(folder, [b"inside", path])

    with pytest.raises(holdfast.Corrupt, match="restore under way"):
        Workspace(folder)

    assert not (tmp_path / ".bashrc").exists()
    assert files_of(folder) == {}


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x91" * 100_000,
        msgspec.msgpack.encode({"steps": [], "made": [], "removed": [[b"a", 2**40]]}),
        b"\x81\xa5st\xff\xffs\x90",
    ],
)
def test_an_own_restore_that_cannot_be_read_is_not_begun(folder, workspace, payload):
    forge(folder, [])
    own = os.open(folder / ".holdfast", FOLDER)
    data = sealed(own, INTENT, payload)
    os.close(own)
    (folder / ".holdfast" / "restore" / "intent").write_bytes(data)

    with pytest.raises(holdfast.Corrupt, match="restore under way"):
        workspace.scan()


def test_an_own_restore_is_finished_where_the_folder_is_now(killed, tmp_path):
    killed.rename(tmp_path / "moved")

    Workspace(tmp_path / "moved")

    assert (tmp_path / "moved" / "code.py").read_text() == "one"


def test_a_copy_of_the_folder_is_not_finished(killed, tmp_path):
    shutil.copytree(killed, tmp_path / "copy")

    assert refused(lambda: Workspace(tmp_path / "copy"))
    Workspace(killed)
    assert (killed / "code.py").read_text() == "one"


def test_without_the_secret_the_advice_leads_to_both_snapshots(
    killed, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other state"))
    assert refused(lambda: Workspace(killed))
    (killed / ".holdfast" / "restore").rename(tmp_path / "elsewhere")

    with holdfast.open(tmp_path / "agents.db") as store:
        thread, workspace = store.thread("agent"), Workspace(killed)
        for checkpoint, text in (("@1", "one"), ("@2", "two")):
            workspace.restore(thread, checkpoint, force=True)
            assert (killed / "code.py").read_text() == text


def test_what_others_wrote_about_states_is_not_believed(
    folder, workspace, thread, tmp_path, monkeypatch
):
    write(folder / "code.py", "one")
    first = thread.save({"turn": 1}, files=workspace)
    write(folder / "code.py", "two")
    thread.save({"turn": 2}, files=workspace)
    workspace.restore(thread, first, state=True)
    record = folder / ".holdfast" / "undo"
    shutil.copy(record, folder / ".holdfast" / "unfinished")

    assert refused(workspace.scan)
    (folder / ".holdfast" / "unfinished").unlink()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other state"))
    with pytest.raises(holdfast.NotFound, match="no restore of thread"):
        workspace.undo(thread)


@pytest.mark.parametrize("what", ["a file", "open to others", "cut short"])
def test_a_restore_needs_a_secret_before_it_writes_anything(
    folder, workspace, thread, tmp_path, monkeypatch, what
):
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    if what == "a file":
        state.write_text("")
    else:
        make_secret()
        secret = state / ".holdfast" / "secret"
        assert secret.stat().st_mode & 0o777 == 0o600
        secret.chmod(0o644) if what == "open to others" else secret.write_bytes(b"x")
    write(folder / "code.py", "one")
    first = thread.save({}, files=workspace)
    write(folder / "code.py", "two")
    thread.save({}, files=workspace)

    with pytest.raises(holdfast.HoldfastError) as caught:
        workspace.restore(thread, first)

    assert caught.value.code == ("io_error" if what == "a file" else "no_state_folder")
    assert (folder / "code.py").read_text() == "two"


def test_who_comes_first_makes_the_secret_for_all(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "far" / "state"))
    own = os.open(tmp_path, FOLDER)

    def seal_some(_):
        make_secret()
        return sealed(own, "kind", b"data")

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(seal_some, range(16)))) == 1
    os.close(own)


def test_a_link_in_what_is_ours_does_not_lead_a_branch_out(
    folder, workspace, thread, tmp_path
):
    write(folder / "code.py")
    thread.save({}, files=workspace)
    (tmp_path / "outside").mkdir()
    (folder / ".holdfast" / "branches").symlink_to(tmp_path / "outside")

    with pytest.raises(holdfast.Unsupported, match="leads to another folder"):
        thread.explore(lambda _: None, n=1, workspace=workspace)

    assert files_of(tmp_path / "outside") == {}
