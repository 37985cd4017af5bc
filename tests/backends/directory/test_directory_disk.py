"""A disk that is full or broken, a damaged index, links: errors say what is true."""

import itertools
import os
import shutil

import pytest

import holdfast
from holdfast import Corrupt, HoldfastError
from holdfast.testing.faults import Fault, FaultyDisk, disk_full, io_error
from holdfast.testing.trials.scenario import copy_folder, dump, goes_on, problems_of

WORK = ".holdfast"
PLACE = "dir:store"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "start" / "store"


@pytest.fixture
def url(folder):
    folder.parent.mkdir()
    with holdfast.open(f"dir:{folder}") as store:
        for name in ("chat", "other"):
            for n in range(4):
                store.thread(name).append(messages=[{"n": n, "text": "words " * 90}])
    return f"dir:{folder}"


@pytest.fixture
def disk():
    disk = FaultyDisk("failing", syncing=False)
    yield disk
    disk.remove()


# --- a full disk ----------------------------------------------------------------------


def test_everything_can_be_read_while_the_disk_is_full(url, disk, tmp_path):
    with disk.open(url, cache_size=0) as store:
        before = dump(store)
        disk.arm(Fault(at=1, effect=disk_full, torn=True, lasting=True))
        with pytest.raises(HoldfastError, match="was not saved") as raised:
            store.thread("chat").append(messages=["lost"])

        assert raised.value.code == "disk_full"
        assert dump(store) == before
        assert problems_of(store) == []
        assert store.export_to(str(tmp_path / "all.hfa")).threads == ("chat", "other")
        disk.heal()
        assert dump(store) == before
        assert goes_on(store) is None


def test_what_was_done_to_the_files_is_seen_while_the_disk_is_full(url, folder, disk):
    with disk.open(url, cache_size=0) as store:
        store.thread("chat").load()
        (folder / "other-2.jsonl").rename(folder / "elsewhere")
        disk.arm(Fault(at=1, effect=disk_full, lasting=True))

        assert [thread.id for thread in store.threads()] == ["chat"]


@pytest.mark.parametrize("effect", [disk_full, io_error])
def test_a_thread_that_an_error_calls_not_deleted_is_there(url, disk, tmp_path, effect):
    """The index may fail after the file is gone: then the thread is deleted."""
    outcomes = set()
    for at in itertools.count(1):
        path = copy_folder(
            os.path.dirname(url.removeprefix("dir:")), str(tmp_path / "copy"), PLACE
        )
        with disk.open(path, cache_size=0) as store:
            disk.arm(Fault(at=at, effect=effect))
            said = _error_of(lambda: store.delete("chat"))
            calls = disk.heal()
            is_there = store.thread("chat").head is not None

            if said is None or "was saved, but a power cut" in said:
                assert not is_there, said
            else:
                assert "was not saved" in said
                assert is_there, said
            assert goes_on(store) is None
        outcomes.add(is_there)
        if calls < at:
            break

    assert outcomes == {True, False}


def _error_of(call):
    try:
        call()
    except HoldfastError as error:
        return str(error)
    return None


@pytest.mark.parametrize("effect", [disk_full, io_error])
def test_whichever_write_of_a_fork_fails_no_number_is_given_twice(
    url, disk, tmp_path, effect
):
    """The index may fail after the fork is in the file: then the fork is made."""
    for at in itertools.count(1):
        path = copy_folder(
            os.path.dirname(url.removeprefix("dir:")), str(tmp_path / "copy"), PLACE
        )
        with disk.open(path) as store, holdfast.open(path) as reader:
            assert reader.thread("chat").head is not None
            disk.arm(Fault(at=at, effect=effect))
            said = _error_of(lambda: store.thread("chat").fork("forked"))
            calls = disk.heal()
            is_seen = reader.thread("forked").head is not None

            assert goes_on(store) is None
            assert store.thread("chat").append(messages=["more"]).step == 5
            assert reader.thread("other").append(messages=["more"]).step == 5
            assert is_seen == (store.thread("forked").head is not None)
            assert is_seen == (said is None)
            assert problems_of(store) == []
        if calls < at:
            break


def test_an_error_says_so_if_it_is_not_known_whether_a_line_was_saved(url, disk):
    def fail(call):
        if call.kind in {"sync", "truncate"} and call.path.endswith("chat-1.jsonl"):
            io_error(call)

    with disk.open(url, cache_size=0) as store:
        disk.arm(Fault(at=1, effect=fail, lasting=True))
        with pytest.raises(HoldfastError, match="it is not known") as raised:
            store.thread("chat").append(messages=["perhaps"])
        disk.heal()

        assert raised.value.code == "io_error"
        assert len(store.thread("chat").load()["messages"]) in {4, 5}
        assert goes_on(store) is None


def test_a_change_that_stops_between_two_files_is_completed_and_seen(url, disk):
    renamed = []

    def fail_once(call):
        if call.kind == "rename":
            renamed.append(call.path)
            if len(renamed) == 2:
                io_error(call)

    with disk.open(url, cache_size=0) as store:
        disk.arm(Fault(at=1, effect=fail_once, lasting=True))
        store.prune(holdfast.Retention(last=1))

        assert len(store.thread("other").history()) == 1
        assert len(store.thread("chat").history()) == 1
        assert len(renamed) == 3
        assert problems_of(store) == []


# --- a damaged index ------------------------------------------------------------------


def test_whichever_page_of_the_index_is_damaged_it_is_made_again(url, folder, tmp_path):
    [index] = (folder / WORK).glob("index-*.db")
    with holdfast.open(url, read_only=True) as store:
        whole = dump(store)

    for middle in range(4096, index.stat().st_size, 8192):
        # In a copy the files have other stamps, so that all of them are taken in again.
        path = copy_folder(str(folder.parent), str(tmp_path / "copy"), PLACE)
        with open(tmp_path / "copy" / "store" / WORK / index.name, "r+b") as file:
            file.seek(middle)
            [byte] = file.read(1)
            file.seek(middle)
            file.write(bytes([byte ^ 1]))

        with holdfast.open(path, cache_size=0) as store:
            assert dump(store) == whole


# --- links ----------------------------------------------------------------------------


def test_a_file_that_is_a_link_is_refused_and_not_followed(url, folder, tmp_path):
    outside = tmp_path / "outside.jsonl"
    shutil.move(folder / "chat-1.jsonl", outside)
    (folder / "chat-1.jsonl").symlink_to(outside)
    before = outside.read_bytes()

    for read_only in (False, True):
        with holdfast.open(url, read_only=read_only) as store:
            with pytest.raises(Corrupt, match="symbolic link"):
                store.thread("chat").load()
            assert len(store.thread("other").load()["messages"]) == 4
    with holdfast.open(url) as store, pytest.raises(Corrupt, match="symbolic link"):
        store.thread("chat").append(messages=["outside"])

    assert outside.read_bytes() == before


def test_a_link_in_the_place_of_the_store_file_is_refused(url, folder, tmp_path):
    shutil.move(folder / "store.jsonl", tmp_path / "outside")
    (folder / "store.jsonl").symlink_to(tmp_path / "outside")

    with pytest.raises(HoldfastError, match=r"store\.jsonl"):
        holdfast.open(url)
