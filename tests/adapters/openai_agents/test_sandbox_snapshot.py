"""The files of a sandbox in a thread, with the SDK's own local sandbox."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
from pathlib import Path

import pytest

import holdfast

pytest.importorskip("agents.sandbox.snapshot", reason="an SDK without sandboxes")

from agents.sandbox.errors import SnapshotPersistError, SnapshotRestoreError
from agents.sandbox.sandboxes.unix_local import UnixLocalSandboxClient
from agents.sandbox.snapshot import SnapshotBase

from holdfast.adapters.openai_agents import HoldfastSnapshot, HoldfastSnapshotSpec
from holdfast.testing.trials.hostile_files import FILE, forged
from support.workspaces import files_of, write


def archive(folder: Path) -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        tar.add(folder, arcname=".")
    made.seek(0)
    return made


def extracted(data, folder):
    with tarfile.open(fileobj=data) as tar:
        tar.extractall(folder, filter="tar")
    return files_of(folder)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "sandbox"
    write(folder / "run.sh", "echo", 0o755)
    write(folder / "deep" / "er" / "note.txt", "text")
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("run.sh")
    return folder


@pytest.fixture
def snapshot(tmp_path):
    return HoldfastSnapshot(id="one", store=str(tmp_path / "agents.db"))


def test_files_come_back_with_modes_links_and_empty_folders(folder, snapshot, tmp_path):
    async def main():
        before = await snapshot.restorable()
        await snapshot.persist(archive(folder))
        return before, await snapshot.restorable(), await snapshot.restore()

    before, after, data = asyncio.run(main())

    assert (before, after) == (False, True)
    assert extracted(data, tmp_path / "again") == files_of(folder)


def test_every_turn_is_a_checkpoint_and_a_rewind_applies(folder, snapshot, tmp_path):
    asyncio.run(snapshot.persist(archive(folder)))
    first = files_of(folder)
    write(folder / "run.sh", "rm -rf .", 0o755)
    asyncio.run(snapshot.persist(archive(folder)))

    with holdfast.open(snapshot.store) as store:
        thread = store.thread("sandbox:one")
        assert thread.read_file("run.sh") == b"rm -rf ."
        thread.rewind("@~1")

    assert extracted(asyncio.run(snapshot.restore()), tmp_path / "again") == first


def test_a_snapshot_without_files_says_so(snapshot):
    with pytest.raises(SnapshotRestoreError):
        asyncio.run(snapshot.restore())


def tar_of(*members):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, kind, link in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, link
            tar.addfile(member)
    made.seek(0)
    return made


@pytest.mark.parametrize(
    "members",
    [
        [("../.bashrc", tarfile.REGTYPE, "")],
        [("a", tarfile.SYMTYPE, "/etc"), ("a/passwd", tarfile.REGTYPE, "")],
        [("a", tarfile.LNKTYPE, "missing")],
        [("a", tarfile.LNKTYPE, "a")],
    ],
)
def test_an_archive_that_leads_out_of_the_sandbox_is_not_saved(snapshot, members):
    with pytest.raises(SnapshotPersistError):
        asyncio.run(snapshot.persist(tar_of(*members)))

    assert not asyncio.run(snapshot.restorable())


def test_a_list_that_leads_out_of_the_sandbox_is_not_restored(snapshot):
    with holdfast.open(snapshot.store) as store:
        files = forged([(b"../.bashrc", FILE, b"echo")])
        store.thread(snapshot.thread).save({}, files=files)

    with pytest.raises(SnapshotRestoreError):
        asyncio.run(snapshot.restore())


def test_what_a_workspace_in_the_sandbox_keeps_for_itself_is_left_out(
    folder, snapshot, tmp_path
):
    write(folder / "deep" / ".holdfast" / "index")
    asyncio.run(snapshot.persist(archive(folder)))

    found = extracted(asyncio.run(snapshot.restore()), tmp_path / "again")
    assert found == files_of(folder)
    assert not (tmp_path / "again" / "deep" / ".holdfast").exists()


def test_a_stored_session_finds_its_snapshot_again(snapshot):
    assert SnapshotBase.parse(snapshot.model_dump()) == snapshot


def test_a_local_sandbox_goes_on_with_its_files(tmp_path):
    spec = HoldfastSnapshotSpec(store=str(tmp_path / "agents.db"))

    async def main():
        client = UnixLocalSandboxClient()
        session = await client.create(snapshot=spec)
        async with session:
            await session.exec("sh", "-c", "echo made > made.txt", shell=False)
        state = client.deserialize_session_state(
            client.serialize_session_state(session.state)
        )
        await client.delete(session)
        again = await client.resume(state)
        async with again:
            with await again.read(Path("made.txt")) as data:
                found = data.read()
        await client.delete(again)
        return found

    assert asyncio.run(main()) == b"made\n"
    with holdfast.open(tmp_path / "agents.db") as store:
        [record] = store.threads()
        assert os.fsdecode(record.id).startswith("sandbox:")
        assert store.thread(record.id).read_file("made.txt") == b"made\n"
