"""Files whose segments are damaged: named, refused, and left out of a salvage."""

import apsw
import pytest

import holdfast
from holdfast import Corrupt
from holdfast.testing import raises
from holdfast.workspace import Omitted
from inner.sqlite import page_checksums
from inner.values import MAGIC, checksum
from support.snapshots import MemorySnapshot

FILES = {
    "good.py": b"good " * 50,
    "bad.py": b"bad " * 50,
    "big": b"first\n" + b"line\n" * 9000,
}


@pytest.fixture
def saved(path):
    with holdfast.open(path) as store:
        store.thread("chat").save({"n": 1}, files=MemorySnapshot(FILES))
        store.thread("chat").save({"n": 2})
    return path


def change(path, beginning, data, *, seal=False):
    """Put other bytes in the place of a segment; with ``seal`` its row looks right."""
    db = apsw.Connection(path, vfs=page_checksums())
    found = db.execute("select key, data from segment").fetchall()
    [key] = [key for key, old in found if old.startswith(beginning)]
    guard = checksum(data, key * 256) if seal else 1
    db.execute(
        "update segment set data = ?, checksum = ? where key = ?", (data, guard, key)
    )
    db.close()


@pytest.mark.parametrize("seal", [False, True])
def test_verify_names_the_file_and_the_others_can_be_read(saved, seal):
    change(saved, b"bad", b"worse", seal=seal)

    with holdfast.open(saved) as store:
        problems = [str(problem) for problem in store.verify().problems]
        chat = store.thread("chat")
        with raises(Corrupt):
            chat.read_file("bad.py")
        assert chat.read_files(["good.py", "big"]) == [FILES["good.py"], FILES["big"]]
        assert chat.load() == {"n": 2}

    assert any("the file 'bad.py'" in problem for problem in problems)
    assert not any("good.py" in problem for problem in problems)


def test_a_changed_chunk_of_a_large_file_is_found(saved):
    change(saved, b"first\n", b"worst\n" * 2000, seal=True)

    with holdfast.open(saved) as store:
        problems = [str(problem) for problem in store.verify().problems]
        with raises(Corrupt):
            store.thread("chat").read_file("big")

    assert ["'big'" in problem for problem in problems] == [True]


def test_a_changed_list_is_found(saved):
    change(saved, MAGIC, MAGIC + b"\x94\x90\x90\xc0\x90", seal=True)

    with holdfast.open(saved) as store:
        assert not store.verify().ok
        with raises(Corrupt):
            store.thread("chat").files()
        with raises(Corrupt):
            store.thread("chat").save({}, files=MemorySnapshot(FILES))
        assert store.thread("chat").load() == {"n": 2}


def test_a_salvage_copies_the_sound_files_and_lists_the_damaged(saved, tmp_path):
    change(saved, b"bad", b"worse")

    report = holdfast.salvage(saved, str(tmp_path / "new.db"))

    assert ["'bad.py'" in str(problem) for problem in report.lost] == [True]
    with holdfast.open(tmp_path / "new.db") as copy:
        for reference in ("@1", "@2"):
            tree = copy.thread("chat").files(reference)
            assert list(tree) == ["big", "good.py"]
            assert tree.omitted == (Omitted(b"bad.py", "damaged"),)
            assert copy.thread("chat").read_file("big", reference) == FILES["big"]
        assert copy.verify().ok


def test_a_salvage_without_the_list_copies_the_states(saved, tmp_path):
    change(saved, MAGIC, b"nothing")

    report = holdfast.salvage(saved, str(tmp_path / "new.db"))

    assert report.checkpoints == 2
    assert ["files" in str(problem) for problem in report.lost] == [True]
    with holdfast.open(tmp_path / "new.db") as copy:
        assert copy.thread("chat").load() == {"n": 2}
