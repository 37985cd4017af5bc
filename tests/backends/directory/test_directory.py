"""A store as a folder of text: what its files are like, and what is done with them."""

import json
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import apsw
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_hexdigest

import holdfast
from holdfast import Conflict, FormatMismatch, Unsupported
from holdfast.backends import UNSET, Write, run
from holdfast.testing.faults import Fault, FaultyDisk, io_error
from holdfast.testing.trials.scenario import (
    OPERATIONS,
    Source,
    build,
    dump,
    problems_of,
)
from inner.directory import (
    CATALOG_QUERIES,
    FIRST,
    CheckpointPart,
    EntryPart,
    LineContent,
    MovePart,
    ThreadPart,
    as_json,
    directory_package,
    elements_as_json,
    elements_from_json,
    encode_line,
    file_name,
    from_json,
)
from inner.sqlite import page_checksums
from support.stores import backend_of

WORK = ".holdfast"
LINE = re.compile(rb'\{"bytes":(\d+),"check":"([0-9a-f]{16})",(.*\})\n')


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def url(folder):
    return f"dir:{folder}"


def files_in(folder):
    return {name for name in os.listdir(folder) if name.endswith(".jsonl")}


def forget(store, thread, *keys):
    """Remove entries of a thread's journal."""
    write = Write(thread=thread, at=1, expect=UNSET, forget=keys)
    run(backend_of(store).commit([write]))


def everything_in(folder):
    """Every file below a folder with its bytes."""
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def index_of(folder):
    [name] = [name for name in os.listdir(folder / WORK) if name.endswith(".db")]
    return folder / WORK / name


# --- the files ------------------------------------------------------------------------


def test_a_message_can_be_found_by_grep(url, folder):
    with holdfast.open(url) as store:
        chat = store.thread("support 4812")
        chat.save({"messages": [{"role": "user", "content": "where is my parcel?"}]})
        chat.append(messages=[{"role": "assistant", "content": "Übermorgen, 日本"}] * 9)

    found = subprocess.run(
        ["grep", "-rlE", "parcel|Übermorgen, 日本", "--include=*.jsonl", str(folder)],
        check=True,
        capture_output=True,
        text=True,
    )

    assert found.stdout.splitlines() == [str(folder / "support-4812-1.jsonl")]
    lines = (folder / "support-4812-1.jsonl").read_text().splitlines()
    assert "where is my parcel?" in lines[0]
    assert lines[1].count("Übermorgen") == 9


def test_every_save_is_one_line_of_json_with_length_and_checksum(url, folder):
    with holdfast.open(url) as store:
        for n in range(5):
            store.thread("chat").save({"n": n, "text": "x" * 500 * n})

    data = (folder / "chat-1.jsonl").read_bytes()
    found = LINE.findall(data)

    assert len(found) == 5
    assert b"".join(b'{"bytes":%b,"check":"%b",%b\n' % line for line in found) == data
    for length, check, body in found:
        assert int(length) == len(body)
        assert check.decode() == xxh3_64_hexdigest(body)
    lines = [json.loads(line) for line in data.splitlines()]
    assert [line["checkpoint"]["step"] for line in lines] == [1, 2, 3, 4, 5]
    checks = [line["check"] for line in lines]
    assert [line["after"] for line in lines] == ["0" * 16, *checks[:-1]]


def test_what_is_done_only_ever_adds_to_the_end_of_a_file(url, folder):
    with holdfast.open(url) as store:
        chat = store.thread("chat")
        chat.save({"n": 0})
        before = (folder / "chat-1.jsonl").read_bytes()
        for change in (
            lambda: chat.append(messages=["x" * 300]),
            lambda: chat.save({"messages": ["y"]}),
            lambda: chat.label("here"),
            lambda: chat.tag("a", "b"),
            lambda: chat.record("key", {"paid": True}),
            lambda: forget(store, "chat", "key"),
            lambda: chat.describe(owner="ann", metadata={"k": 1}),
            lambda: chat.rewind("@~1"),
            chat.undo,
            lambda: chat.fork("fork"),
            lambda: store.thread("fork").append(messages=["z"]),
        ):
            change()
            after = (folder / "chat-1.jsonl").read_bytes()

            assert after.startswith(before)
            assert after.count(b"\n") == before.count(b"\n") + 1
            before = after

    assert files_in(folder) == {"store.jsonl", "chat-1.jsonl"}


def test_what_is_forgotten_costs_the_same_however_long_the_file_is(url, folder):
    with holdfast.open(url) as store:
        chat = store.thread("chat")
        sizes = []
        for n in range(3):
            chat.append(messages=[f"{n} " + "x" * 20_000])
            chat.record("key", n)
            before = (folder / "chat-1.jsonl").stat().st_size
            forget(store, "chat", "key")
            sizes.append((folder / "chat-1.jsonl").stat().st_size - before)

    assert max(sizes) < 400


def test_what_was_forgotten_is_not_found_in_the_files_again(url, folder):
    with holdfast.open(url) as store:
        chat = store.thread("chat")
        chat.save({"n": 1})
        chat.record_all({"a": 1, "b": 2})
        forget(store, "chat", "a")
        chat.record("a", "again")
        forget(store, "chat", "b")
        before = dump(store)
    shutil.rmtree(folder / WORK)

    with holdfast.open(url) as store:
        assert dump(store) == before
        assert store.thread("chat").journal() == {"a": "again"}
        assert problems_of(store) == []


def test_a_family_has_one_file_and_another_family_another(url, folder):
    with holdfast.open(url) as store:
        store.thread("a").save(1)
        store.thread("a").fork("b")
        store.thread("c").save(1)

    assert files_in(folder) == {"store.jsonl", "a-1.jsonl", "c-3.jsonl"}


def test_long_texts_and_bytes_come_back_from_the_files_alone(url, folder):
    state = {
        "text": "日本語のテキスト" * 3000,
        "bytes": bytes(range(256)) * 100,
        "list": [{"n": n, "text": "é" * n} for n in range(200)],
        "odd": ['"text:x"', "base64:", "text:::", "\u2028\0\x7f\n", float("nan")],
    }
    with holdfast.open(url) as store:
        store.thread("t").save(state)
        saved = store.thread("t").get()
    shutil.rmtree(folder / WORK)

    with holdfast.open(url) as store:
        loaded = store.thread("t").load()

        assert store.thread("t").get() == saved
        assert store.verify().ok
    assert repr(loaded) == repr(state)
    assert (folder / "t-1.jsonl").read_text().count("日本語") > 2900


@given(st.one_of(st.binary(), st.text().map(str.encode), st.sampled_from([
    b'"text:x"', b'"base64:"', b"1,2", b"1],[2", b'1,"":2', b" 1", b'"a\nb"', b"[NaN]",
    "é".encode()[:1], "日本".encode()[1:5], b"[" * 2000, b"",
])))  # fmt: skip
def test_any_bytes_can_stand_in_a_line(data):
    for written, restored in (
        (as_json, from_json),
        (elements_as_json, elements_from_json),
    ):
        line = msgspec.json.encode({"before": 1, "data": written(data), "after": 2})

        assert b"\n" not in line
        json.loads(line)
        found = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        assert restored(found["data"]) == data


# A column that no line has would be lost with the index; `recent` follows `changed`.
COLUMNS = {
    "thread": (ThreadPart, {"family", "recent", "checksum", "guard"}, {}),
    "checkpoint": (CheckpointPart, {"family", "checksum"}, {"digest": "sha256"}),
    "journal": (EntryPart, {"checksum"}, {}),
    "move": (MovePart, {"checksum"}, {}),
}


@pytest.mark.parametrize("table", COLUMNS)
def test_every_column_of_the_index_is_in_a_line(table):
    part, elsewhere, renamed = COLUMNS[table]
    with holdfast.open(":memory:") as store:
        db = backend_of(store).database.writer
        columns = {row[1] for row in db.execute(f"pragma table_info({table})")}

    assert {renamed.get(c, c) for c in columns - elsewhere} == {*part.__struct_fields__}


def test_every_statement_about_the_files_is_used():
    files = Path(directory_package.__file__).parent.glob("*.py")
    source = "".join(file.read_text() for file in files)

    assert [name for name in CATALOG_QUERIES if f'"{name}"' not in source] == []


# --- their names ----------------------------------------------------------------------

RESERVED = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{d}{n}" for d in ("com", "lpt") for n in range(10)),
}


@given(st.text(min_size=1), st.text(min_size=1), st.integers(1), st.integers(1))
def test_names_of_files_are_plain_and_never_collide(one, other, number, another):
    first, second = file_name(one, number), file_name(other, another)

    assert (first.lower() == second.lower()) <= (number == another)
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*-[0-9]+\.jsonl", first)
    assert first.partition(".")[0] not in RESERVED
    assert len(first) < 255


@pytest.mark.parametrize(
    ("thread", "name"),
    [
        ("conversation:4812", "conversation-4812-7.jsonl"),
        ("Ärger & Co.", "arger-co-7.jsonl"),
        ("../../etc/passwd", "etc-passwd-7.jsonl"),
        ("CON", "con-7.jsonl"),
        ("日本", "thread-7.jsonl"),
        ("x" * 512, "x" * 60 + "-7.jsonl"),
    ],
)
def test_the_name_of_a_file_tells_what_is_in_it(thread, name):
    assert file_name(thread, 7) == name


def test_threads_whose_names_differ_in_case_have_files_of_their_own(url, folder):
    names = ["Chat", "chat", "CHAT", "ch-at", "ch at"]
    with holdfast.open(url) as store:
        for name in names:
            store.thread(name).save({"name": name})

        assert [store.thread(n).load()["name"] for n in names] == names
    assert len({name.lower() for name in files_in(folder)}) == 6


# --- the index ------------------------------------------------------------------------


@pytest.fixture
def built(url):
    """A store with something of everything, closed, and all that is in it."""
    build(url)
    with holdfast.open(url, **Source("more", 3_000_000).options()) as store:
        for name in ("save", "fork", "label", "tag", "describe", "record", "prune"):
            OPERATIONS[name](store)
        store.thread("gone").save(1)
        store.delete("gone")
        return dump(store)


@pytest.mark.parametrize("lost", ["all of it", "index", "pages", "header", "end"])
def test_an_index_that_is_lost_or_damaged_is_made_anew(lost, url, folder, built):
    index = index_of(folder)
    if lost == "all of it":
        shutil.rmtree(folder / WORK)
    elif lost == "index":
        index.unlink()
    else:
        data = bytearray(index.read_bytes())
        if lost == "pages":
            data[-6000:-5000] = bytes(1000)
        elif lost == "header":
            data[:100] = b"no database" * 9 + b"!"
        else:
            del data[-9000:]
        index.write_bytes(data)

    with holdfast.open(url, cache_size=0) as store:
        assert dump(store) == built
        assert problems_of(store) == []


def test_an_index_that_is_damaged_in_use_is_made_anew(url, folder, built):
    with holdfast.open(url, cache_size=0) as store:
        dump(store)
        disk = FaultyDisk("rotten")
        with disk.open(url, cache_size=0) as other:

            def rot(call):
                if call.path.endswith(".db"):
                    raise apsw.exception_for(apsw.SQLITE_IOERR_DATA)

            disk.arm(Fault(at=1, effect=rot, kinds=frozenset({"read"})))
            found = dump(other)
            disk.heal()
        disk.remove()

        assert found == built
        assert dump(store) == built
        assert store.thread("after").save(1).step == 1


def test_an_index_of_another_version_is_made_anew(url, folder, built):
    db = apsw.Connection(str(index_of(folder)), vfs=page_checksums())
    db.execute("update folder set version = version + 1")
    db.execute("delete from checkpoint")
    db.close()

    with holdfast.open(url, cache_size=0) as store:
        assert dump(store) == built


def test_an_index_that_says_something_else_than_the_files_is_found_out(
    url, folder, built
):
    db = apsw.Connection(str(index_of(folder)), vfs=page_checksums())
    db.execute("update thread set owner = 'eve', checksum = null where name = 'main'")
    db.close()

    with holdfast.open(url) as store:
        [problem] = problems_of(store)

    assert "main-1.jsonl: the index says something else" in problem


def test_a_store_goes_on_when_its_work_folder_is_removed(url, folder, built):
    with holdfast.open(url, cache_size=0) as store, holdfast.open(url) as other:
        shutil.rmtree(folder / WORK)

        assert other.thread("new").append(log=[1]).step == 1
        assert dump(store) == dump(other)
        assert store.thread("new").append(log=[2]).step == 2
        assert other.thread("new").load() == {"log": [1, 2]}
        assert problems_of(store) == []


def test_facts_about_the_whole_store_are_in_a_file_too(url, folder):
    with holdfast.open(url) as store:
        assert run(backend_of(store).setting("colour", b"\0blue")) == b"\0blue"
    shutil.rmtree(folder / WORK)

    with holdfast.open(url) as store:
        assert run(backend_of(store).setting("colour", b"red")) == b"\0blue"
        assert run(backend_of(store).setting("size")) is None


# --- removing -------------------------------------------------------------------------


@pytest.mark.parametrize("fork", [False, True])
def test_what_was_deleted_is_not_left_in_any_file(fork, url, folder):
    with holdfast.open(url) as store:
        secret = store.thread("mine", owner="canary", metadata={"c": "canary"})
        secret.save({"n": 1})
        if fork:
            secret.fork("fork").describe(owner="bob", metadata={})
        secret.save({"text": "canary " * 200}, label="canary", tags=["canary"])
        secret.record("key", "canary")
        store.thread("other").save(1)
        secret.delete()
        texts = {name: (folder / name).read_bytes() for name in files_in(folder)}
        store.compact()

    assert not [name for name, text in texts.items() if b"canary" in text]
    found = everything_in(folder)
    assert not [name for name, data in found.items() if b"canary" in data]


def test_a_pruned_file_holds_what_is_left_and_nothing_else(url, folder):
    with holdfast.open(url) as store:
        chat = store.thread("chat")
        for n in range(20):
            chat.save({"n": n, "text": f"text {n} " * 100})
        store.prune(holdfast.Retention(last=2))
        text = (folder / "chat-1.jsonl").read_text()

        assert [c.step for c in chat.history()] == [20, 19]
        assert problems_of(store) == []
    assert "text 19" in text
    assert "text 18" in text
    assert "text 17" not in text


def test_a_file_is_gone_when_nothing_is_left_to_remember(url, folder):
    times = iter(range(0, 10**18, 10**15))
    with holdfast.open(url, clock=lambda: next(times)) as store:
        store.thread("gone").save(1)
        store.thread("kept").save(1)
        store.delete("gone")
        store.thread("kept").save(2)
        assert "gone-1.jsonl" in files_in(folder)

        store.prune(holdfast.Retention(last=1))

        assert files_in(folder) == {"store.jsonl", "kept-2.jsonl"}
        assert problems_of(store) == []


def test_compacting_leaves_nothing_in_a_file_that_is_over(url, folder):
    with holdfast.open(url) as store:
        chat = store.thread("chat", metadata={"secret": "old metadata"})
        chat.save({"n": 1}, label="old label")
        chat.record("key", "old value")
        chat.record("key", "new value", replace=True)
        chat.record("other", "old entry")
        forget(store, "chat", "other")
        chat.label("new label")
        chat.describe(metadata={})
        before = dump(store)

        store.compact()

        text = (folder / "chat-1.jsonl").read_text()
        assert dump(store) == before
        assert problems_of(store) == []
        store.compact()
        assert (folder / "chat-1.jsonl").read_text() == text
    assert "old" not in text
    assert "new value" in text
    assert "new label" in text


def test_a_family_is_named_for_what_is_left_of_it(url, folder):
    times = iter(range(0, 10**18, 10**15))
    with holdfast.open(url, clock=lambda: next(times)) as store:
        store.thread("first").save(1)
        store.thread("first").fork("second").save(2)
        store.delete("first")
        store.thread("second").delete("@~1")

        store.prune(holdfast.Retention(last=1))

        assert files_in(folder) == {"store.jsonl", "second-1.jsonl"}
        assert store.thread("second").load() == 2
        assert problems_of(store) == []


# --- the folder -----------------------------------------------------------------------


def test_only_the_owner_can_read_what_is_in_a_folder(url, folder):
    old = os.umask(0)
    try:
        with holdfast.open(url) as store:
            store.thread("t").save({"secret": "x" * 1000})
            files = {p: os.stat(p).st_mode for p in everything_in(folder)}
            folders = [os.stat(p).st_mode for p in (folder, folder / WORK)]
    finally:
        os.umask(old)

    assert {stat.S_IMODE(mode) for mode in files.values()} == {0o600}
    assert {stat.S_IMODE(mode) for mode in folders} == {0o700}


def test_a_folder_of_somebody_else_is_refused_and_left_alone(url, folder):
    folder.mkdir()
    (folder / "notes.jsonl").write_text('{"mine": 1}\n')

    with pytest.raises(FormatMismatch, match=r"notes\.jsonl"):
        holdfast.open(url)

    assert files_in(folder) == {"notes.jsonl"}


def test_a_folder_with_other_things_in_it_can_become_a_store(url, folder):
    folder.mkdir()
    (folder / "README.md").write_text("My agents")

    with holdfast.open(url) as store:
        store.thread("t").save(1)

    with holdfast.open(url) as store:
        assert store.thread("t").load() == 1


def test_a_newer_format_is_refused_with_the_way_out(url, folder):
    holdfast.open(url).close()
    line, _ = encode_line(LineContent(after=FIRST, format=3))
    (folder / "store.jsonl").write_bytes(line)

    for read_only in (False, True):
        with pytest.raises(FormatMismatch, match="upgrade holdfast"):
            holdfast.open(url, read_only=read_only)


def test_what_cannot_be_a_folder_is_told(tmp_path):
    (tmp_path / "file").write_text("x")

    for url in (f"dir:{tmp_path}/file", f"dir:{tmp_path}/file/store"):
        with pytest.raises(holdfast.HoldfastError, match="cannot be made") as raised:
            holdfast.open(url, make_folders=True)
        assert raised.value.code == "cannot_open"
    with pytest.raises(holdfast.Unstorable, match="dir:path"):
        holdfast.open("dir:")


def test_home_is_expanded_and_folders_are_made(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))

    with holdfast.open("dir:~/deep/er", make_folders=True) as store:
        store.thread("t").save(1)

    assert (tmp_path / "deep" / "er" / "t-1.jsonl").exists()


def test_compressing_text_that_is_to_be_read_is_refused(url, folder):
    with pytest.raises(Unsupported, match="without compress"):
        holdfast.open(url, compress=True)

    assert not folder.exists()


def test_a_backup_is_a_folder_of_its_own(url, folder, tmp_path):
    with holdfast.open(url) as store:
        store.thread("t").save({"a": 1})
        store.backup(str(tmp_path / "copy"))
        expected = dump(store)
        store.thread("t").save({"a": 2})
        with pytest.raises(Conflict, match="exists"):
            store.backup(str(tmp_path / "copy"))

    assert not (tmp_path / "copy" / WORK).exists()
    with holdfast.open(f"dir:{tmp_path}/copy") as copy:
        assert dump(copy) == expected
        assert problems_of(copy) == []


def test_a_backup_that_fails_leaves_nothing_behind(url, folder, tmp_path):
    disk = FaultyDisk("failing")
    with disk.open(url) as store:
        store.thread("t").save({"a": 1})
        disk.arm(Fault(at=2, effect=io_error))
        with pytest.raises(holdfast.HoldfastError) as raised:
            store.backup(str(tmp_path / "copy"))
        disk.heal()
        with pytest.raises(holdfast.HoldfastError, match="cannot be made"):
            store.backup(str(tmp_path / "no such folder" / "copy"))
    disk.remove()

    assert raised.value.code == "io_error"
    assert os.listdir(tmp_path) == ["store"]


def test_salvage_refuses_to_write_into_a_folder_that_is_there(url, tmp_path):
    (tmp_path / "mine").mkdir()

    with holdfast.open(url) as store, pytest.raises(Conflict, match="exists"):
        store.salvage(f"dir:{tmp_path}/mine")

    assert os.listdir(tmp_path / "mine") == []


def test_a_store_can_be_copied_into_a_folder_and_back(url, tmp_path):
    build(str(tmp_path / "a.db"))
    with (
        holdfast.open(tmp_path / "a.db") as one,
        holdfast.open(url) as two,
        holdfast.open(tmp_path / "b.db") as three,
    ):
        one.copy_to(two)
        two.copy_to(three)

        assert dump(one) == dump(two) == dump(three)
        assert problems_of(two) == []
