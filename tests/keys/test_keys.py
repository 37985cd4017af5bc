"""Opening an encrypted store: the forms of a key, wrong keys, rotation."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import apsw
import pytest

import holdfast
from holdfast import (
    Conflict,
    Corrupt,
    FormatMismatch,
    Message,
    Unstorable,
    Unsupported,
)
from holdfast.backends import Layer, run
from holdfast.keys import write_key_file
from holdfast.testing import blocking, raises
from inner.sqlite import page_checksums, row_checksum
from support.programs import run_program

KEY, OTHER = bytes(range(32)), bytes(32)


class Vault:
    """A key that does not leave its vault, as a KMS has it."""

    def __init__(self, mask=0x5A):
        self.mask = mask

    def wrap(self, key):
        return bytes(byte ^ self.mask for byte in key)

    unwrap = wrap


@pytest.fixture(params=["{}/store.db", "dir:{}/store"], ids=["file", "folder"])
def url(request, tmp_path):
    return request.param.format(tmp_path)


def save(url, key):
    with holdfast.open(url, key=key, durability="normal") as store:
        store.thread("chat", owner="ann").save({"n": 1})


def load(url, key):
    with holdfast.open(url, key=key) as store:
        return store.thread("chat").load()


def files_of(folder):
    return {p: p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


@pytest.mark.parametrize("form", ["bytes", "passphrase", "file", "object"])
def test_every_form_of_key_opens_the_store_again(form, path, tmp_path):
    write_key_file(tmp_path / "key")
    forms = {"bytes": KEY, "passphrase": "a b c", "file": tmp_path / "key"}
    key = forms.get(form) or Vault()

    save(path, key)

    assert load(path, key) == {"n": 1}


@pytest.mark.parametrize("key", [OTHER, "a passphrase", Vault()])
def test_a_wrong_key_is_refused_before_anything_is_written(key, url, tmp_path):
    save(url, KEY)
    before = files_of(tmp_path)

    with raises(Unsupported, code="wrong_key"):
        holdfast.open(url, key=key)
    with raises(Unsupported, code="wrong_key"):
        blocking(holdfast.open_async(url, key=key))

    assert {p: b for p, b in files_of(tmp_path).items() if p in before} == before
    assert load(url, KEY) == {"n": 1}


def test_an_object_that_unwraps_another_key_is_refused(path):
    save(path, Vault())

    with raises(Unsupported, code="wrong_key"):
        holdfast.open(path, key=Vault(0x11))


def test_a_store_is_encrypted_or_not_and_opened_as_what_it_is(url):
    save(url, KEY)

    with raises(Unsupported, code="key_needed"):
        holdfast.open(url)
    with raises(Unsupported, code="key_needed"):
        blocking(holdfast.open_async(url))


def test_a_plain_store_is_not_opened_with_a_key(url):
    save(url, None)

    for read_only in (False, True):
        with raises(Unsupported, code="not_encrypted"):
            holdfast.open(url, key=KEY, read_only=read_only)

    assert load(url, None) == {"n": 1}
    with (
        holdfast.open(url) as store,
        raises(Unsupported, code="not_encrypted"),
    ):
        store.rotate_key(KEY)


@pytest.mark.parametrize("key", [b"short", "", 7, bytearray(32)])
def test_what_cannot_be_a_key_is_refused_without_showing_it(key, path):
    with raises(Unstorable) as raised:
        holdfast.open(path, key=key)

    assert "short" not in str(raised.error)
    assert not os.path.exists(path)


@pytest.mark.parametrize(
    "content",
    [
        b"0123456789abcdef" * 2,
        b"01 23 45 67 89 ab cd ef 01 23 45",
        b"0123456789abcdef" * 3,
        bytes(31),
        b"",
    ],
)
def test_a_key_file_that_is_cut_short_is_refused(content, path, tmp_path):
    (tmp_path / "key").write_bytes(content)

    for _ in "a new store", "an existing one":
        with raises(Unsupported, "wrong_key"):
            holdfast.open(path, key=tmp_path / "key")
        save(path, KEY)


def forge_header(path, change):
    """Write another setting of the keys, with the checksum that fits."""
    db = apsw.Connection(str(path), vfs=page_checksums())
    db.create_scalar_function("row_checksum", row_checksum)
    [[header]] = db.execute("select value from setting where name = 'keys'")
    db.execute(
        "update setting set value = ?1, checksum = row_checksum(name, ?1)"
        " where name = 'keys'",
        [change(header)],
    )
    db.close()


@pytest.mark.parametrize("cost", [{"n": 3}, {"n": 2**40}, {"r": 2**29}, {"p": 2**30}])
def test_a_forged_cost_of_a_passphrase_is_refused_before_it_is_paid(cost, path):
    save(path, "four words")
    forge_header(path, lambda header: json.dumps(json.loads(header) | cost).encode())

    with raises(Corrupt):
        holdfast.open(path, key="four words")


@pytest.mark.parametrize(
    "forged",
    [b'{"scheme": "\xff"}', b'{"x": ' + b"[" * 100_000],
    ids=["text", "depth"],
)
def test_a_header_that_is_no_json_is_refused(forged, path):
    save(path, KEY)
    forge_header(path, lambda _: forged)

    with raises(FormatMismatch):
        holdfast.open(path, key=KEY)


def test_a_passphrase_that_is_no_text_is_refused(path):
    with raises(Unstorable):
        holdfast.open(path, key="\udcff")


def test_a_key_file_is_private_and_never_replaced(tmp_path):
    file = tmp_path / "key"
    write_key_file(file)

    assert file.stat().st_mode & 0o077 == 0
    with raises(Conflict, code="file_exists"):
        write_key_file(file)


def test_a_file_that_holds_no_key_is_refused(tmp_path, path):
    (tmp_path / "key").write_text("secret")

    for name in ("key", "missing"):
        with raises(Unsupported, code="wrong_key"):
            holdfast.open(path, key=tmp_path / name)


# --- rotation -------------------------------------------------------------------------


@pytest.mark.parametrize("new", [OTHER, "a passphrase"])
def test_after_a_rotation_only_the_new_key_opens_the_store(new, url):
    save(url, KEY)
    with holdfast.open(url, key=KEY) as store:
        store.rotate_key(new)
        store.thread("chat").save({"n": 2})

    assert load(url, new) == {"n": 2}
    with raises(Unsupported, code="wrong_key"):
        holdfast.open(url, key=KEY)


def test_nothing_is_left_of_the_wrapped_key_in_a_folder(tmp_path):
    url = f"dir:{tmp_path / 'store'}"
    save(url, KEY)
    text = (tmp_path / "store/store.jsonl").read_text()
    [wrapped] = re.findall(r'"wrapped":"([^"]+)"', text)

    with holdfast.open(url, key=KEY) as store:
        store.rotate_key(OTHER)

    left = (tmp_path / "store/store.jsonl").read_text()
    assert wrapped in text
    assert wrapped not in left


def test_the_store_stays_open_to_others_while_the_key_is_rotated(path):
    with holdfast.open(path, key=KEY) as one, holdfast.open(path, key=KEY) as other:
        one.thread("chat").save({"n": 1})
        one.rotate_key(OTHER)
        other.thread("chat").save({"n": 2})

    assert load(path, OTHER) == {"n": 2}


def test_a_rotation_killed_at_any_write_leaves_one_of_the_two_keys(tmp_path):
    [report] = run_program("kill_rotation", tmp_path)

    assert report["wrong"] == []
    assert report["points"] > 4


# --- owners ---------------------------------------------------------------------------


def test_without_the_key_of_an_owner_nothing_of_it_can_be_read(path):
    with holdfast.open(path, key=KEY) as store:
        store.thread("a", owner="ann").save({"n": 1})
        store.thread("b", owner="bob").save({"n": 2})
        run(store.runner.context.keys.destroy("ann"))

    with holdfast.open(path, key=KEY) as store:
        assert store.thread("b").load() == {"n": 2}
        with raises(Corrupt) as raised:
            store.thread("a").load()

        assert "destroyed" in str(raised.error)
        store.thread("anew", owner="ann").save({"n": 3})
        assert store.thread("anew").load() == {"n": 3}


def test_a_thread_without_an_owner_can_be_claimed_and_stays_readable(path):
    with holdfast.open(path, key=KEY) as store:
        store.thread("a", metadata={"k": 1}).save({"n": 1})
        store.thread("a").describe(owner="ann")
        run(store.runner.context.keys.destroy("ann"))

        assert store.thread("a").about.owner == "ann"
        assert store.thread("a").about.metadata == {"k": 1}


class Overtaken(Layer):
    """Lets another come first, once."""

    def __init__(self, backend, other):
        super().__init__(backend)
        self.others = [other]

    def _let_pass(self):
        while self.others:
            self.others.pop()()

    async def commit(self, writes):
        self._let_pass()
        return await super().commit(writes)

    def commit_each(self, batches):
        self._let_pass()
        return super().commit_each(batches)


@pytest.mark.parametrize("awaited", [False, True])
def test_of_two_owners_who_begin_a_thread_at_once_one_has_it(awaited, url):
    def other():
        with holdfast.open(url, key=KEY) as store:
            store.thread("x", owner="bob").record("first", 1)

    opening = holdfast.open_async(url, key=KEY) if awaited else None
    with blocking(opening) if opening else holdfast.open(url, key=KEY) as store:
        keys = getattr(store, "_target", store).runner.context.keys
        keys.backend = Overtaken(keys.backend, other)
        assert store.thread("x", owner="ann").record("second", 2) == 2
        store.thread("x").save({"n": 1})
        run(keys.destroy("ann"))

    with holdfast.open(url, key=KEY) as store:
        assert store.thread("x").journal() == {"first": 1, "second": 2}
        assert store.thread("x").load() == {"n": 1}
        assert store.thread("x").about.owner == "bob"


# --- taking it along ------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), [(KEY, None), (None, KEY), (KEY, OTHER)])
def test_a_copy_has_the_keys_of_the_store_that_it_is_in(first, second, path, tmp_path):
    with (
        holdfast.open(path, key=first) as store,
        holdfast.open(f"dir:{tmp_path / 'copy'}", key=second) as copy,
    ):
        chat = store.thread("chat", owner="ann", metadata={"about": "whales"})
        for n in range(30):
            chat.append(messages=[f"{n} whales" * 40])
        chat.fork("other", at="@9").record("key", {"refunded": 1})
        store.prune(holdfast.Retention(last=5))
        store.copy_to(copy)
        again = store.copy_to(copy)

        assert copy.verify().ok
        assert again.skipped == 1
        assert copy.thread("other").load() == store.thread("other").load()
        assert copy.thread("other").journal() == {"key": {"refunded": 1}}
        digests = [c.digest for c in store.thread("chat").history()]
        assert [c.digest for c in copy.thread("chat").history()] == digests


def test_an_archive_and_a_backup_and_a_salvage_can_be_opened(path, tmp_path):
    with holdfast.open(path, key=KEY) as store:
        store.thread("chat", owner="ann").append(messages=["x" * 999])
        store.backup(str(tmp_path / "backup.db"))
        store.salvage(str(tmp_path / "salvage.db"))
        store.export_to(str(tmp_path / "archive"))

        state = store.thread("chat").load()
    assert load(str(tmp_path / "backup.db"), KEY) == state
    assert load(str(tmp_path / "salvage.db"), KEY) == state
    with holdfast.open(str(tmp_path / "other.db"), key=OTHER) as other:
        other.import_archive(str(tmp_path / "archive"))
        assert other.thread("chat").load() == state
        assert other.verify().ok


def test_a_search_reads_the_messages_and_writes_no_index(path):
    texts = ["about whales", "about ships"]
    with holdfast.open(path, key=KEY) as store:
        store.conversations.create("a", messages=[Message.user(t) for t in texts])

        [match] = store.search("whales")
        assert match.message.text == "about whales"
        assert "search" not in store.runner.context.backend.abilities
