"""Saving what can be read of a file that is too damaged to be opened."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest

import holdfast
from holdfast import FormatMismatch, NotFound
from holdfast.testing import raises
from inner.sqlite import Column, Table

PAGES = "a value too long for one page " * 2000


def filled(path, **options):
    with holdfast.open(path, durability="normal", **options) as store:
        chat = store.thread("chat", owner="ann", metadata={"k": 1})
        for n in range(40):
            chat.append(messages=[f"{n} " + "x" * 50 * n])
        chat.save({**chat.load(), "long": PAGES}, label="long", tags=["t"])
        chat.record("call", {"refunded": 129})
        chat.rewind("@20")
        chat.fork("fork", at="label:long").save({"n": 1})
        store.thread("other").save([PAGES, 1])
        store.compact()


def seen(path):
    with holdfast.open(path, read_only=True) as store:
        assert store.verify().ok
        return {
            thread.id: (
                thread.owner,
                store.thread(thread.id).load(),
                store.thread(thread.id).journal(),
                sorted(
                    (c.id, c.step, c.saved_at, c.label, c.tags)
                    for c in store.thread(thread.id).history(None, all=True)
                ),
            )
            for thread in store.threads()
        }


def overwrite(path, start, data):
    with open(path, "r+b") as file:
        file.seek(start)
        file.write(data)


@pytest.mark.parametrize(
    ("start", "data"),
    [
        (0, b"\0" * 8192),
        (0, b"\xff" * 8192),
        (0, b"\0" * 100),
        (16, b"\x00\x03"),
        (44, b"\xff" * 4),
        (60, b"\xff" * 40),
        (100, b"\0" * 8),
        (4000, b"\xff"),
    ],
)
def test_everything_is_saved_though_the_first_page_is_lost(tmp_path, start, data):
    path = tmp_path / "a.db"
    filled(path)
    before = seen(path)
    overwrite(path, start, data)
    damaged = path.read_bytes()

    with raises(holdfast.HoldfastError):
        holdfast.open(path).close()
    saved = holdfast.salvage(path, str(tmp_path / "b.db"))

    assert saved.lost == ()
    assert seen(tmp_path / "b.db") == before
    assert path.read_bytes() == damaged


def test_a_compressed_store_is_saved_with_its_blocks(tmp_path):
    path = tmp_path / "a.db"
    with holdfast.open(path, compress=True) as store:
        for n in range(120):
            texts = [
                f"{n} {m} {n * m} of what is said again and again" for m in range(40)
            ]
            store.thread(f"t{n % 5}").save({"text": texts})
    before = seen(path)
    overwrite(path, 0, b"\0" * 2048)

    holdfast.salvage(path, str(tmp_path / "b.db"))

    assert seen(tmp_path / "b.db") == before


def test_what_is_only_in_the_log_is_saved_too(tmp_path):
    path = tmp_path / "a.db"
    with holdfast.open(path) as store:
        store.thread("chat").save({"n": 1, "text": PAGES})
        store.compact()
        store.thread("chat").save({"n": 2, "text": PAGES})
        for end in ("", "-wal"):
            shutil.copyfile(f"{path}{end}", tmp_path / f"b.db{end}")
    overwrite(tmp_path / "b.db", 0, b"\0" * 8192)
    # SQLite would find the first page in the log: that is lost as well.
    log = bytearray((tmp_path / "b.db-wal").read_bytes())
    frames = range(32, len(log), 24 + 8192)
    first = [at for at in frames if log[at : at + 4] == b"\0\0\0\x01"]
    for at in first:
        log[at + 24 : at + 24 + 8192] = b"\0" * 8192
    (tmp_path / "b.db-wal").write_bytes(log)

    saved = holdfast.salvage(tmp_path / "b.db", str(tmp_path / "c.db"))

    assert saved.checkpoints == 2
    assert seen(tmp_path / "c.db")["chat"][1] == {"n": 2, "text": PAGES}


def test_more_than_the_first_page_costs_only_what_was_there(tmp_path):
    path = tmp_path / "a.db"
    filled(path)
    whole = seen(path)
    overwrite(path, 0, b"\0" * 8192)
    pages = os.path.getsize(path) // 8192
    overwrite(path, (pages // 2) * 8192, b"\xff" * 8192)

    saved = holdfast.salvage(path, str(tmp_path / "b.db"))

    rest = seen(tmp_path / "b.db")
    assert saved.checkpoints > 0
    assert rest.keys() <= whole.keys()


def test_what_is_no_store_is_refused(tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"something else entirely " * 4000)
    (tmp_path / "empty").touch()

    with raises(FormatMismatch):
        holdfast.salvage(other, str(tmp_path / "b.db"))
    with raises(NotFound):
        holdfast.salvage(tmp_path / "nothing", str(tmp_path / "b.db"))

    assert not (tmp_path / "b.db").exists()


def test_a_row_without_columns_is_not_taken_for_one(tmp_path):
    page = bytearray(8192)
    page[:10] = b"\x0d\0\0\0\x01\0\0\0\x01\0"  # a leaf; its one cell is at 256
    page[256:259] = b"\x01\x07\x01"  # one byte, row 7, a header of that one byte
    (tmp_path / "other").write_bytes(b"\xff" * 8192 + page)

    with raises(FormatMismatch):
        holdfast.salvage(tmp_path / "other", str(tmp_path / "b.db"))


def test_a_log_cut_within_a_page_is_read_up_to_there(tmp_path):
    path = tmp_path / "a.db"
    filled(path)
    before = seen(path)
    overwrite(path, 0, b"\0" * 8192)
    salts = b"saltsalt"
    header = b"\x37\x7f\x06\x82".ljust(16, b"\0") + salts.ljust(16, b"\0")
    frame = b"\0\0\0\x02\0\0\0\x02" + salts + b"\0" * 8
    (tmp_path / "a.db-wal").write_bytes(header + frame + b"\x0d\0")

    holdfast.salvage(path, str(tmp_path / "b.db"))

    assert seen(tmp_path / "b.db") == before


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    path = tmp_path / "a.db"
    filled(path)
    overwrite(path, 0, b"\0" * 8192)

    holdfast.salvage(path, str(tmp_path / "b.db"))
    (tmp_path / "noise").write_bytes(os.urandom(100_000))
    with raises(FormatMismatch):
        holdfast.salvage(tmp_path / "noise", str(tmp_path / "c.db"))

    assert list(scratch.iterdir()) == []


def test_a_sound_store_and_a_folder_are_saved_as_well(tmp_path):
    filled(tmp_path / "a.db")
    filled(f"dir:{tmp_path}/text")

    one = holdfast.salvage(tmp_path / "a.db", str(tmp_path / "b.db"))
    two = holdfast.salvage(f"dir:{tmp_path}/text", str(tmp_path / "c.db"))

    assert one == two
    assert one.threads == 3


def test_a_row_is_recognised_by_the_columns_of_its_table():
    number = Column("number", int, is_required=False)
    name = Column("name", str, is_required=True)
    size = Column("size", int, is_required=True)
    added_later = Column("colour", str, is_required=False)
    named = Table("named", [number, name, added_later])
    sized = Table("sized", [number, size, added_later])

    assert named.fits((None, "a", "red"))
    assert named.fits((None, "a"))
    assert not named.fits((None, 7, "red"))
    assert not named.fits((None, None, "red"))
    assert not named.fits((1, "a", "red"))
    assert sized.fits((None, 7, None))
    assert not sized.fits((None, "a", None))
