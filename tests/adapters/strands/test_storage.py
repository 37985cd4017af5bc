"""Bytes by key, as sessions, stashes and memories of Strands use a storage."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strands.types.exceptions import StorageError

import holdfast
from holdfast.adapters.strands import HoldfastStorage
from holdfast.errors import Unsupported

ID = "01a1e5cc-a011-7737-8d9e-2cdc952bb90"
FOLDER = "session/s1/scopes/agent/a/snapshots"


def finished(coroutine):
    return asyncio.run(coroutine)


def snapshot(*texts, **fields):
    """The bytes of a snapshot, as Strands writes it."""
    messages = [{"role": "user", "content": [{"text": text}]} for text in texts]
    data = {"messages": messages, "state": {}, **fields}
    document = {"scope": "agent", "schema_version": "1.0", "data": data, "app_data": {}}
    return json.dumps(document, ensure_ascii=False).encode()


# --- the contract ---------------------------------------------------------------------


def test_bytes_are_kept_by_key(store):
    async def check():
        storage = HoldfastStorage(store)
        keys = [f"{FOLDER}/snapshot_latest.json", "memory/b.md", "memory/a", "m"]
        keys += [f"{FOLDER}/immutable_history/snapshot_{ID}{n}.json" for n in "210"]
        for key in keys:
            await storage.write(key, b"old")
            await storage.write(key, key.encode())

        assert await storage.list("") == sorted(keys)
        assert [await storage.read(key) for key in keys] == [k.encode() for k in keys]
        assert await storage.list("memory/") == ["memory/a", "memory/b.md"]
        assert await storage.list("mem") == ["memory/a", "memory/b.md"]
        history = sorted(keys[-3:])
        for query in (FOLDER, f"{FOLDER}/imm"):
            assert (await storage.list(query))[:3] == history
        assert await storage.list(f"{FOLDER}/immutable_history/") == history
        assert await storage.list(history[0]) == history[:1]

        for number, key in enumerate(keys):
            await storage.delete(key)
            await storage.delete(key)
            assert await storage.read(key) is None
            assert await storage.list("") == sorted(keys[number + 1 :])
        await storage.write(keys[0], b"again")
        await storage.write(keys[-1], b"again")
        assert await storage.read(keys[0]) == await storage.read(keys[-1]) == b"again"

    finished(check())


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
ODD = [b"", b"\xff\x00", b"{}", b'{"data": {"snapshot": 1}}', b'{"a": 1, "a": 2}']
ODD += [b'{"a":1}', b'"\\ud800"', b"1e400", b"[" * 9999, b'{"data": {"messages": 5}}']
DUMPED = DOCUMENTS.map(lambda value: json.dumps(value, ensure_ascii=False))


@given(
    st.sampled_from(ODD)
    | st.binary()
    | DUMPED.map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.dictionaries(st.text(), DOCUMENTS).map(lambda data: snapshot("hi", **data))
)
def test_the_same_bytes_come_back(data):
    with holdfast.open(":memory:") as store:
        storage = HoldfastStorage(store)
        finished(storage.write("key", data))

        assert finished(storage.read("key")) == data


@pytest.mark.parametrize("key", ["", "k" * 600, "\ud800"])
def test_a_key_that_cannot_be_is_refused(key, filed):
    with pytest.raises(StorageError):
        finished(HoldfastStorage(filed).write(key, b""))


def test_keys_may_be_any_text_and_do_not_meet(filed):
    async def check():
        storage = HoldfastStorage(filed)
        keys = ["/", "//", "a/b", "a%2Fb", "é ", "..", "\n", "\0", "immutable_history"]
        keys += ["immutable_history/snapshot_x.json", f"snapshot_{ID}0.json"]
        for key in keys:
            await storage.write(key, key.encode())

        assert [await storage.read(key) for key in keys] == [k.encode() for k in keys]
        assert await storage.list("") == sorted(keys)
        assert await storage.list("a%") == ["a%2Fb"]

    finished(check())


def test_a_search_finds_words_in_keys_and_contents(filed):
    async def check():
        storage = HoldfastStorage(filed)
        if not hasattr(storage, "search"):
            pytest.skip("this version of Strands has no search")
        await storage.write("memory/lyon.md", b"It rains.")
        await storage.write("notes", snapshot("the trains of Lyon"))

        found = await storage.search("trains in Lyon")
        scores = [(one.key, one.score) for one in found]
        assert scores == [("notes", 2), ("memory/lyon.md", 1)]

    finished(check())


def test_a_view_of_a_prefix_has_its_keys(filed):
    async def check():
        storage = HoldfastStorage(filed)
        await storage.namespace("team/").write("note", b"hi")

        assert await storage.list("") == ["team/note"]
        assert await storage.namespace("team").list("") == ["note"]

    finished(check())


# --- several agents -------------------------------------------------------------------


def test_a_snapshot_is_not_written_over_a_newer_one(store):
    async def check():
        key = f"{FOLDER}/snapshot_latest.json"
        one, other = HoldfastStorage(store), HoldfastStorage(store)
        assert await one.read(key) is await other.read(key) is None
        await one.write(key, snapshot("one"))
        await one.write(key, snapshot("one", "two"))

        with pytest.raises(StorageError, match="make the agent anew"):
            await other.write(key, snapshot("other"))

        assert await other.read(key) == snapshot("one", "two")
        await other.write(key, snapshot("one", "two", "three"))
        await one.delete(key)
        with pytest.raises(StorageError):
            await other.write(key, snapshot("other"))
        await one.write(key, snapshot("one"))
        await HoldfastStorage(store).write(key, snapshot("a third"))
        with pytest.raises(StorageError):
            await one.write(key, snapshot("one", "two"))

    finished(check())


def test_a_snapshot_that_others_went_on_from_is_not_refused_as_it_is_stored(filed):
    def at(second, *texts):
        document = json.loads(snapshot(*texts))
        return json.dumps({**document, "created_at": f"2026-05-01T00:00:0{second}Z"})

    async def check():
        key = f"{FOLDER}/snapshot_latest.json"
        one, other = HoldfastStorage(filed), HoldfastStorage(filed)
        await one.write(key, at(1, "one").encode())
        await other.read(key)
        await other.write(key, at(2, "one", "two").encode())

        await one.write(key, at(3, "one").encode())

        assert await other.read(key) == at(2, "one", "two").encode()
        for texts in (["one", "three"], ["one", "two"]):
            with pytest.raises(StorageError, match="make the agent anew"):
                await one.write(key, at(4, *texts).encode())

    finished(check())


def test_other_keys_are_overwritten(filed):
    async def check():
        one, other = HoldfastStorage(filed), HoldfastStorage(filed)
        await one.read("note"), await other.read("note")
        await one.write("note", b"one")
        await other.write("note", b"other")

        assert await one.read("note") == b"other"

    finished(check())


def test_a_cancelled_write_is_made_and_known(filed):
    async def check():
        key = f"{FOLDER}/snapshot_latest.json"
        storage = HoldfastStorage(filed)
        await storage.read(key)
        task = asyncio.ensure_future(storage.write(key, snapshot("one")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        await storage.write(key, snapshot("one", "two"))
        assert storage.thread(key).count() == 2

    finished(check())


# --- what is stored -------------------------------------------------------------------


def test_a_version_costs_what_changed(tmp_path):
    texts = [f"{number} " + "word " * 200 for number in range(40)]
    written = 0
    with holdfast.open(tmp_path / "agents.db") as store:
        storage = HoldfastStorage(store)
        for number in range(40):
            data = snapshot(*texts[: number + 1], system_prompt="be good " * 500)
            file = f"immutable_history/snapshot_{ID[:-1]}{number:02}.json"
            finished(storage.write(f"{FOLDER}/{file}", data))
            written += len(data)
        thread = storage.thread(f"{FOLDER}/immutable_history/snapshot_{ID}0.json")

        assert len(thread.load()["messages"]) == 40

    assert (tmp_path / "agents.db").stat().st_size < written / 3


def test_labels_of_a_caller_are_no_keys(filed):
    storage, key = HoldfastStorage(filed), f"immutable_history/snapshot_{ID}0.json"
    finished(storage.write(key, snapshot("one")))
    thread = storage.thread(key)
    thread.save(thread.load(), label="before-refund")

    assert finished(storage.list("")) == [key]
    assert finished(storage.read(key)) == snapshot("one")


def test_versions_of_a_key_are_its_history(filed):
    async def check():
        storage, key = HoldfastStorage(filed), f"{FOLDER}/snapshot_latest.json"
        await storage.write(key, snapshot("one"))
        await storage.write(key, snapshot("one", "two"))
        thread = storage.thread(key)
        assert str(thread.diff("@^")).startswith("+ messages[1]")

        thread.rewind("@^")
        assert await storage.read(key) == snapshot("one")
        thread.fork(storage.thread("copy").id, at="@")
        assert await storage.read("copy") == snapshot("one")

    finished(check())


# --- stores ---------------------------------------------------------------------------


def test_an_async_store_over_a_file_is_used_from_other_loops(tmp_path):
    async def check():
        async with holdfast.open_async(tmp_path / "agents.db") as store:
            storage = HoldfastStorage(store)
            await asyncio.to_thread(finished, storage.write("key", b"there"))
            assert await storage.read("key") == b"there"

    finished(check())


def test_an_async_store_of_a_server_is_refused(server, schema):
    async def check():
        async with holdfast.open_async(server, schema=schema) as store:
            with pytest.raises(Unsupported, match=r"holdfast\.open\(\)"):
                HoldfastStorage(store)

    finished(check())


def test_an_address_is_opened_and_closed(tmp_path):
    storage = HoldfastStorage(tmp_path / "own.db")
    finished(storage.write("key", b"there"))
    storage.close()

    with pytest.raises(StorageError, match="closed"):
        finished(storage.read("key"))


def test_the_scope_of_a_store_that_was_given_is_used(tmp_path):
    with holdfast.open(tmp_path / "shared.db") as store:
        finished(HoldfastStorage(store, scope="acme").write("key", b"theirs"))

        assert finished(HoldfastStorage(store).read("key")) is None
        assert finished(HoldfastStorage(store, scope="acme").read("key")) == b"theirs"
        with pytest.raises(holdfast.Unstorable, match="give the address"):
            HoldfastStorage(store, key="secret")
