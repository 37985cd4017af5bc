"""Erasing in an encrypted store: keys are destroyed, receipts are signed."""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

import holdfast
from holdfast import Conflict, Corrupt, HoldfastError, NotFound, Unsupported
from holdfast.keys import OwnerKeyFile, OwnerSecrets
from holdfast.testing import raises
from support.programs import run_program

KEY = bytes(range(32))
PLACES = pytest.mark.parametrize("kind", ["", "dir:"], ids=["file", "folder"])


@pytest.fixture
def keys(tmp_path):
    return OwnerKeyFile.create(tmp_path / "owner.keys")


def save(store, owner):
    store.thread(f"of {owner}", owner=owner).save({"text": f"{owner} " * 99})


@PLACES
def test_a_backup_made_before_is_unreadable_for_the_owner(kind, keys, tmp_path):
    with holdfast.open(f"{kind}{tmp_path}/store", key=keys) as store:
        save(store, "ann")
        save(store, "bob")
        store.backup(f"{tmp_path}/backup")
        receipt = store.erase(owner="ann")
        save(store, "carl")

        assert receipt.backups == "unreadable"
        assert store.verify().problems == ()

    with holdfast.open(f"{kind}{tmp_path}/backup", key=keys) as store:
        assert store.thread("of bob").load() == {"text": "bob " * 99}
        assert [thread.id for thread in store.threads()] == ["of bob"]
        with raises(Corrupt):
            store.thread("of ann").load()
        [problem] = store.verify().problems
        assert "destroyed" in problem.what
        store.thread("new", owner="ann").save({"n": 1})
        store.erase(owner="ann")
        assert store.verify().problems == ()
        with raises(NotFound):
            store.thread("of ann").load()


def test_with_one_key_for_all_the_receipt_says_that_backups_stay_readable(tmp_path):
    with holdfast.open(tmp_path / "store", key=KEY) as store:
        save(store, "ann")
        store.backup(f"{tmp_path}/backup")

        assert store.erase(owner="ann").backups == "readable"
    with holdfast.open(tmp_path / "backup", key=KEY) as store:
        assert store.thread("of ann").load() == {"text": "ann " * 99}


def test_so_it_does_if_something_was_begun_without_the_owner(keys, tmp_path):
    with holdfast.open(tmp_path / "store", key=keys) as store:
        save(store, "ann")
        store.thread("chat").save({"n": 1})
        store.thread("chat").describe(owner="ann")

        assert store.erase(owner="ann").backups == "readable"


def test_a_receipt_is_signed_and_does_not_name_anybody(tmp_path):
    with holdfast.open(tmp_path / "store", key=KEY) as store:
        save(store, "ann")
        receipt = store.erase(owner="ann")
        text = receipt.to_json()

        assert "ann" not in text
        assert store.verify_receipt(receipt)
        assert store.verify_receipt(text)
        assert not store.verify_receipt(text.replace('"threads":1', '"threads":2'))
        assert not store.verify_receipt(replace(receipt, signature=None))
    kept = holdfast.Erasure.from_json(text)
    assert kept.is_about("ann")
    assert not kept.is_about("bob")
    with holdfast.open(tmp_path / "other", key=KEY) as other:
        assert not other.verify_receipt(text)
    with holdfast.open(":memory:") as plain, raises(Unsupported, "not_encrypted"):
        plain.verify_receipt(text)


# --- the file -------------------------------------------------------------------------


def test_nothing_of_a_secret_is_left_in_the_file(keys, tmp_path):
    path = tmp_path / "owner.keys"
    with holdfast.open(tmp_path / "store", key=keys) as store:
        save(store, "ann")
        [secret] = json.loads(path.read_text())["owners"].values()
        with path.open("rb") as before:
            store.erase(owner="ann")
            overwritten = before.read()

    assert secret not in path.read_text()
    assert overwritten.strip(b"\0") == b""
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.glob("*.part")) == []


def test_a_change_killed_at_any_call_leaves_nothing_that_the_next_does_not_remove(
    tmp_path,
):
    [report] = run_program("kill_owner_keys", tmp_path)

    assert report["wrong"] == []
    assert report["calls"] > 30


@pytest.mark.parametrize("name", ["owner.keys.4711.part", "owner.keys.part"])
def test_an_erasure_overwrites_what_a_killed_process_left(name, keys, tmp_path):
    left = tmp_path / name
    with holdfast.open(tmp_path / "store", key=keys) as store:
        save(store, "ann")
        shutil.copyfile(tmp_path / "owner.keys", left)
        with left.open("rb") as before:
            assert store.erase(owner="ann").backups == "unreadable"
            overwritten = before.read()

    assert not left.exists()
    assert overwritten.strip(b"\0") == b""


def test_an_erasure_through_a_link_overwrites_what_was_left_beside_it(keys, tmp_path):
    link = tmp_path / "here" / "link.keys"
    link.parent.mkdir()
    link.symlink_to(keys.path)
    left = link.with_name("link.keys.4711.part")
    with holdfast.open(tmp_path / "store", key=OwnerKeyFile(link)) as store:
        save(store, "ann")
        shutil.copyfile(keys.path, left)
        with left.open("rb") as before:
            assert store.erase(owner="ann").backups == "unreadable"
            overwritten = before.read()

    assert not left.exists()
    assert overwritten.strip(b"\0") == b""


def test_what_is_no_file_of_ours_is_not_overwritten(keys, tmp_path):
    secret = keys.make_secret("ann")
    foreign, part = tmp_path / "foreign", tmp_path / "owner.keys.part"
    foreign.write_text("mine")

    part.symlink_to(foreign)
    keys.make_secret("bob")
    assert not part.is_symlink()
    for make in (lambda: part.hardlink_to(foreign), lambda: os.mkfifo(part)):
        make()
        with raises(Conflict, "file_exists"):
            keys.destroy_secret("ann")
        part.unlink()
    part.mkdir()
    with raises(HoldfastError, "io_error"):
        keys.destroy_secret("ann")

    assert foreign.read_text() == "mine"
    assert keys.find_secret("ann") == secret


def test_through_a_symbolic_link_the_file_itself_is_changed(keys, tmp_path):
    link = tmp_path / "link"
    link.symlink_to("owner.keys")

    secret = OwnerKeyFile(link).make_secret("ann")

    assert link.is_symlink()
    assert keys.find_secret("ann") == secret


def test_a_reader_finds_all_secrets_while_other_processes_change_the_file(tmp_path):
    [report] = run_program("rival_owner_keys", tmp_path)

    assert report["wrong"] == []
    assert report["reads"] > 0


def test_threads_that_make_secrets_at_once_lose_none(keys):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(keys.make_secret, [str(n % 20) for n in range(80)]))

    assert len(set(made)) == 20
    assert [keys.find_secret(str(n)) for n in range(20)] == made[:20]


def test_a_file_is_never_replaced_and_a_wrong_one_is_told(keys, tmp_path):
    with raises(Conflict, "file_exists"):
        OwnerKeyFile.create(tmp_path / "owner.keys")
    with holdfast.open(tmp_path / "store", key=keys) as store:
        save(store, "ann")
    (tmp_path / "other").write_text("{}")
    (tmp_path / "no text").write_bytes(b'{"owners": {"\xff": ""}}')
    (tmp_path / "nested").write_bytes(b'{"x": ' + b"[" * 100_000)

    for wrong in ("missing", "other", "no text", "nested"):
        with raises(Unsupported, "wrong_key"):
            holdfast.open(tmp_path / "store", key=OwnerKeyFile(tmp_path / wrong))
    assert isinstance(keys, OwnerSecrets)


def test_a_store_can_go_over_to_a_key_with_secrets_and_not_back(keys, tmp_path):
    with holdfast.open(tmp_path / "store", key=KEY) as store:
        save(store, "ann")
        store.rotate_key(keys)
        save(store, "bob")

        assert store.erase(owner="bob").backups == "unreadable"
        assert store.erase(owner="ann").backups == "readable"
        with raises(Unsupported):
            store.rotate_key(KEY)
