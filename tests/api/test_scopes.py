"""What a scope is beside a store that shows only its own: names, closing, upkeep."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Closed, Conflict, NotFound, Unsupported
from holdfast.agents import Agent
from holdfast.cli import main
from holdfast.errors import Unstorable
from holdfast.retention import Retention
from holdfast.testing import blocking, raises

KEY = bytes(range(32))


def test_the_same_names_are_different_threads(store):
    for scope in ("a", "b"):
        chat = store.scope(scope).thread("chat", owner="ann", agent="bob")
        chat.save({"in": scope, "text": scope * 500})
        chat.append(messages=[scope])
    store.thread("chat").save({"in": None})

    for scope in ("a", "b"):
        inside = store.scope(scope)
        assert inside.thread("chat").load()["in"] == scope
        [thread] = inside.threads()
        assert (thread.id, thread.owner, thread.agent) == ("chat", "ann", "bob")
        assert inside.delete(owner="ann") == 1
    assert store.thread("chat").load() == {"in": None}
    assert store.verify().ok


def test_a_store_without_a_scope_sees_all_and_saves_to_none(memory):
    memory.scope("a").scope("b").thread("chat").save({"n": 1})
    memory.scope("a").agents.save(Agent(id="bob"))

    assert [t.id for t in memory.threads()] == ["a\x1fagent:bob", "a\x1fb\x1fchat"]
    chat = memory.thread("a\x1fb\x1fchat")
    assert chat.load() == {"n": 1}
    assert chat.label("seen").label == "seen"
    for change in (
        lambda: chat.save({}),
        lambda: chat.record("key", 1),
        lambda: chat.consume("grant"),
        lambda: chat.fork("mine"),
        lambda: chat.describe(owner="me"),
        lambda: memory.thread("a\x1fnew").append(messages=[1]),
    ):
        with raises(Unsupported, code="in_scope"):
            change()
    # Ids of records are known in their scope only.
    assert not memory.agents.list()
    assert memory.delete(prefix="a\x1f") == 2


@pytest.mark.parametrize(
    "name", ["", "a\x1fb", 'a"b', "a\\b", "a\nb", "\0", 5, "x" * 256]
)
def test_a_scope_has_a_name_without_strange_characters(memory, name):
    with raises(Unstorable):
        memory.scope(name)


@pytest.mark.parametrize("name", ["a\x1fb", "\x1f"])
def test_no_name_of_a_caller_leads_into_a_scope(memory, name):
    for refused in (
        lambda: memory.conversations.create(name),
        lambda: memory.agents.save(Agent(id=name)),
        lambda: memory.documents.save(name, "x"),
        lambda: memory.thread("chat", owner=name),
        lambda: memory.thread("chat", agent=name),
    ):
        with raises(Unstorable):
            refused()


# --- closing --------------------------------------------------------------------------


def test_closing_a_scope_leaves_the_store_open(store):
    scope = store.scope("a")
    scope.thread("chat").save({})
    scope.close()

    for use in (scope.threads, scope.thread("chat").load, scope.stats, scope.changes):
        with raises(Closed):
            use()
    with raises(Closed):
        scope.thread("chat").save({})
    assert store.scope("a").thread("chat").load() == {}


def test_closing_the_store_closes_its_scopes(path):
    store = holdfast.open(path)
    scope = store.scope("a")
    scope.thread("chat").save({})
    store.close()

    with raises(Closed):
        scope.thread("chat").load()


def test_a_scope_that_was_opened_closes_its_file(path, tmp_path):
    with holdfast.open(path, scope="a") as scope:
        scope.thread("chat").save({})

    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]
    with holdfast.open(path) as store:
        assert store.scope("a").thread("chat").load() == {}


def test_saves_of_many_scopes_share_a_commit(path):
    async def main():
        async with holdfast.open_async(path, durability="normal") as store:
            saves = [
                store.scope(f"s{n % 3}").thread("chat").append(list=[n])
                for n in range(30)
            ]
            await asyncio.gather(*saves)
            return [
                len((await store.scope(f"s{n}").thread("chat").load())["list"])
                for n in range(3)
            ]

    before = threading.active_count()
    assert asyncio.run(main()) == [10, 10, 10]
    assert threading.active_count() <= before


# --- the feed -------------------------------------------------------------------------


def test_changes_of_others_do_not_end_the_waiting(store):
    scope = store.scope("a")
    scope.thread("chat").save({})
    after = scope.changes().cursor
    others = [threading.Timer(0.02 * n, store.thread("x").save, ({},)) for n in (1, 2)]
    own = threading.Timer(0.08, scope.thread("chat").save, ({},))
    for timer in (*others, own):
        timer.start()

    page = scope.changes(after, timeout=30)

    for timer in (*others, own):
        timer.join()
    assert [change.thread for change in page] == ["chat"]


def test_waiting_for_a_scope_ends_with_the_timeout(store):
    store.thread("x").save({})

    page = store.scope("a").changes(timeout=0.05)

    assert (len(page), page.cursor) == (0, store.changes().cursor)


# --- upkeep ---------------------------------------------------------------------------


def fill(store):
    chat = store.thread("chat", owner="ann")
    for number in range(4):
        chat.append(messages=[{"role": "user", "content": f"{number} " * 300}])
    chat.fork("fork").save({})
    chat.record("key", 1)
    store.conversations.create("talk", messages=[{"role": "user", "content": "hi"}])
    store.agents.save(Agent(id="bob"))
    store.agents.checkpoint("bob")
    store.documents.save("notes/a", "text")


def test_the_statistics_are_those_of_a_store_of_its_own(store, memory):
    fill(store)
    fill(store.scope("b"))
    fill(store.scope("a"))
    fill(memory.scope("a"))

    apart = {"file_bytes": 0, "stored_bytes": 0, "abilities": frozenset(), "format": 0}
    counted = holdfast_facts(store.scope("a").stats(), apart)
    assert counted == holdfast_facts(memory.stats(), apart)
    assert counted["threads"] < store.stats().threads
    heavy = store.scope("a").heaviest(1)
    assert [weight.threads for weight in heavy] == [("chat", "fork")]


def holdfast_facts(found, apart):
    return {name: getattr(found, name) for name in found.__struct_fields__} | apart


def test_digests_are_the_same_inside_and_outside(memory):
    fill(memory.scope("a"))
    inside = {c.id: c.digest for c in memory.scope("a").thread("chat").history()}

    outside = memory.thread("a\x1fchat").history()

    assert {c.id: c.digest for c in outside} == inside
    with holdfast.open(":memory:") as other:
        memory.scope("a").copy_to(other)
        assert {c.id: c.digest for c in other.thread("chat").history()} == inside
        assert other.verify().ok


def test_an_archive_goes_from_scope_to_scope_and_with_all_scopes(memory):
    fill(memory.scope("a"))
    own, whole = BytesIO(), BytesIO()
    memory.scope("a").export_to(own)
    memory.export_to(whole)

    memory.scope("b").import_archive(BytesIO(own.getvalue()))
    with holdfast.open(":memory:") as other:
        other.import_archive(BytesIO(whole.getvalue()))
        moved = [t.id for t in other.scope("a").threads()]

    assert memory.verify().ok
    assert {t.id for t in memory.scope("b").threads()} == {*moved}


@pytest.mark.parametrize("operation", ["compact", "backup", "rotate_key", "copy"])
def test_what_is_about_the_whole_store_is_refused(path, operation):
    with holdfast.open(path, key=KEY) as store, holdfast.open(":memory:") as other:
        other.thread("chat").save({})
        scope = store.scope("a")
        calls = {
            "compact": scope.compact,
            "backup": lambda: scope.backup(f"{path}-copy"),
            "rotate_key": lambda: scope.rotate_key(bytes(32)),
            "copy": lambda: other.copy_to(scope),
        }
        with raises(Unsupported, code="whole_store"):
            calls[operation]()


def test_tombstones_of_others_are_not_forgotten(memory, clock):
    for scope in ("a", "b"):
        chat = memory.scope(scope).thread("chat")
        chat.save({})
        chat.delete()
    clock.advance(timedelta(days=100))

    memory.scope("a").prune(Retention())

    for scope in ("a", "b"):
        with raises(holdfast.Conflict, code="thread_deleted"):
            memory.scope(scope).thread("chat").save({})


def test_the_retention_of_the_store_is_applied_to_all_scopes(clock):
    with holdfast.open(":memory:", clock=clock, retention=Retention(last=1)) as store:
        for number in range(3):
            store.thread("chat").save(number)
        store.scope("a").thread("chat").save(1)
        clock.advance(timedelta(hours=2))
        store.scope("a").thread("chat").save(2)

        assert store.thread("chat").count() == 1


def test_a_seal_of_a_scope_opens_it(path):
    with holdfast.open(path) as store:
        fill(store)
        seal = store.scope("a").seal()
        store.scope("a").thread("chat").save({})
        later = store.scope("a").seal()

    holdfast.open(path, scope="a", seal=seal).close()
    with holdfast.open(path) as store:
        store.scope("a").thread("chat").delete()
    with raises(holdfast.Corrupt):
        holdfast.open(path, scope="a", seal=later)


def test_damage_elsewhere_is_told_without_names(path):
    with holdfast.open(path) as store:
        fill(store.scope("a"))
        store.scope("secret").thread("hidden").save({"n": 1})
        database: Any = store.runner.context.backend
        database.backend.database.writer.execute(
            "update checkpoint set size = 99 where id ="
            " (select id from checkpoint order by seq desc limit 1)"
        )
        found = store.scope("a").verify()

        assert not found.ok
        assert "without a scope" in str(found.problems[0])
        assert "secret" not in str(found.problems)
        assert "hidden" not in str(found.problems)


def test_a_damaged_file_of_others_is_told_without_its_name(tmp_path):
    url = f"dir:{tmp_path / 'store'}"
    with holdfast.open(url) as store:
        store.scope("a").thread("chat").save({"n": 1})
        store.scope("b").thread("hidden").save({"n": 1})
    [file] = (tmp_path / "store").rglob("*hidden*")
    file.write_bytes(file.read_bytes().replace(b"n", b"m", 1))

    with holdfast.open(url) as store:
        scope = store.scope("a")
        assert scope.thread("chat").load() == {"n": 1}
        assert "hidden" not in str(scope.verify().problems)
        assert not scope.verify().ok
        for read in (scope.threads, scope.changes, scope.stats, scope.seal):
            with raises(holdfast.Corrupt) as told:
                read()
            assert "hidden" not in str(told.error)


# --- keys -----------------------------------------------------------------------------


def test_an_owner_has_a_key_of_his_own_in_each_scope(path):
    with holdfast.open(path, key=KEY) as store:
        for scope in ("a", "b"):
            store.scope(scope).thread("chat", owner="ann").save({"text": "x" * 900})
        store.runner.run(lambda _: store.scope("a").runner.context.keys.destroy("ann"))

    with holdfast.open(path, key=KEY) as store:
        assert store.scope("b").thread("chat").load() == {"text": "x" * 900}
        with raises(holdfast.Corrupt):
            store.scope("a").thread("chat").load()


def test_the_name_of_a_scope_is_encrypted_and_known_to_callers(path):
    with holdfast.open(path, key=KEY) as store:
        for name in ("acme", "acme2"):
            store.scope(name).scope("inner").agents.save(Agent(id="bob"))
        chat = store.scope("acme").thread("chat")
        chat.save({})
        with raises(holdfast.Conflict) as refused:
            chat.save({}, expect=None)
        assert "thread 'chat'" in str(refused.error)
        names = {thread.id for thread in store.scope("acme").threads()}
        assert names == {"chat", "inner\x1fagent:bob"}
        assert len(store.threads(prefix="acme")) == 3
        assert len(store.scope("acme").threads(prefix="inner\x1fa")) == 1
        assert store.verify().ok

    stored = Path(path).read_bytes()
    assert b"acme" not in stored
    assert b"inner" not in stored


def test_a_refused_change_is_an_error_by_the_async_api_too(path):
    with blocking(holdfast.open_async(path, key=KEY)) as store:
        chat = store.scope("a").thread("chat", owner="ann")
        chat.save({})
        with raises(Unsupported, code="other_owner"):
            chat.describe(owner="bob")


# --- the command line -----------------------------------------------------------------


def test_the_command_line_opens_a_scope(path, monkeypatch, capsys):
    with holdfast.open(path) as store:
        store.scope("a").thread("chat").save({"n": 1})
        store.scope("b").thread("secret").save({"n": 1})
    monkeypatch.setenv("HOLDFAST_STORE", path)

    def threads(*arguments):
        assert main(["threads", "--json", *arguments]) == 0
        found = json.loads(capsys.readouterr().out)
        return [thread["id"] for thread in found["threads"]]

    assert threads("--scope", "a") == ["chat"]
    monkeypatch.setenv("HOLDFAST_SCOPE", "b")
    assert threads() == ["secret"]
    assert main(["salvage", f"{path}-b"]) == 0
    capsys.readouterr()
    monkeypatch.delenv("HOLDFAST_SCOPE")
    assert threads("--store", f"{path}-b") == ["secret"]
    assert main(["compact", "--scope", "a"]) != 0


def test_tasks_that_save_in_a_scope_at_once_are_told_apart(path):
    async def work():
        async with holdfast.open_async(path, scope="acme") as store:
            await store.thread("late").save({"n": 0})
            late = store.thread("late").save({"n": 1}, expect=None)
            saves = [store.thread(f"t{n}").save({"n": n}) for n in range(6)]
            return await asyncio.gather(late, *saves, return_exceptions=True)

    late, *saved = asyncio.run(work())

    assert isinstance(late, Conflict)
    assert (late.thread, late.code) == ("late", "head_moved")
    assert [checkpoint.thread for checkpoint in saved] == [f"t{n}" for n in range(6)]
    with holdfast.open(path) as store:
        assert store.scope("acme").thread("late").load() == {"n": 0}
        assert store.scope("acme").thread("t5").load() == {"n": 5}


# --- ids that another scope has seen --------------------------------------------------


@pytest.mark.parametrize("key", [None, bytes(32)])
def test_no_scope_can_make_an_id_of_others_ambiguous(key, path):
    with holdfast.open(path, key=key) as store:
        # Older families come first where ids are equal, and there are many.
        threads = [store.scope("mallory").thread(f"{n}") for n in range(12)]
        for thread in threads:
            thread.save({"n": 0})
        outside = store.thread("outside").save({"n": 1})
        acme = store.scope("acme").thread("inside").save({"n": 2})
        inner = store.scope("acme").scope("inner").thread("t").save({"n": 3})
        for thread in threads:
            for saved in (outside, acme, inner):
                thread.save({"n": 4}, id=saved.id)

        assert store.get(outside.id) == outside
        assert store.get(outside.id[:-1]) == outside
        assert store.scope("acme").get(acme.id).thread == "inside"
        assert store.scope("acme").scope("inner").get(inner.id).thread == "t"
        assert store.scope("acme").get(inner.id).thread == "inner\x1ft"
        with raises(NotFound, code="ambiguous") as raised:
            store.get(acme.id)
        assert "mallory" in str(raised.error)
