"""What a salvage of a store with scopes writes, from outside and from within one."""

from __future__ import annotations

import json

import pytest

import holdfast
from holdfast import Message
from holdfast.agents import Agent
from holdfast.cli import main

KEY = bytes(range(32))
LOST = b"a text that will be damaged"
# So large that no page of a file has it together with something else.
LARGE = "y" * 20_000 + LOST.decode() + "y" * 20_000


def fill(store):
    """Threads of two scopes and of none: a fork, records, a rewind, a deletion."""
    store.thread("chat").save({"in": None})
    for scope in ("acme", "acme/eu"):
        inside = store.scope(scope)
        chat = inside.thread("chat", owner="ann", metadata={"of": scope})
        first = chat.append(log=[scope, "x" * 600])
        chat.append(log=[2])
        chat.fork("fork").append(log=[3])
        chat.record("paid", {"sum": 5})
        chat.rewind(first)
        inside.agents.save(Agent(id="bob", name="Bob"))
        inside.conversations.create("talk", agent="bob", messages=[Message.user("hi")])
        inside.thread("gone").save({})
        inside.thread("gone").delete()


def content(store):
    return {
        thread.id: (
            thread.owner,
            thread.agent,
            thread.metadata,
            thread.forked_from,
            store.thread(thread.id).load(),
            store.thread(thread.id).journal(),
        )
        for thread in store.threads(limit=None)
    }


def salvaged(store, tmp_path, scope="acme", **options):
    """What is in the copy of a sound store, and in a scope of it."""
    report = store.salvage(str(tmp_path / "saved.db"))
    with holdfast.open(tmp_path / "saved.db", **options) as saved:
        assert saved.verify().ok
        assert (report.threads, report.lost) == (len(content(saved)), ())
        return content(saved), content(saved.scope(scope))


def test_the_threads_of_scopes_are_salvaged_under_their_names(store, tmp_path):
    fill(store)

    saved, acme = salvaged(store, tmp_path)

    assert saved == content(store)
    assert acme == content(store.scope("acme"))
    assert {"chat", "acme\x1fchat", "acme/eu\x1ffork"} < saved.keys()


@pytest.mark.parametrize("address", ["{}/store.db", "dir:{}/store"])
def test_an_encrypted_store_with_scopes_is_salvaged(address, tmp_path):
    with holdfast.open(address.format(tmp_path), key=KEY) as store:
        fill(store)

        saved, acme = salvaged(store, tmp_path, key=KEY)

        assert saved == content(store)
        assert acme == content(store.scope("acme"))


@pytest.mark.parametrize("key", [None, KEY])
def test_salvage_within_a_scope_writes_that_scope_as_it_knows_it(key, tmp_path):
    with holdfast.open(tmp_path / "store.db", key=key) as store:
        fill(store)
        acme = store.scope("acme")
        acme.scope("inner").thread("chat", owner="ann").save({"in": "inner"})

        saved, inner = salvaged(acme, tmp_path, "inner", key=key)

        assert saved == content(acme)
        assert inner == content(acme.scope("inner"))


@pytest.mark.parametrize("address", ["{}/store.db", "dir:{}/store"])
def test_a_damaged_store_with_scopes_is_repaired(address, tmp_path, capsys):
    address = address.format(tmp_path)
    with holdfast.open(address) as store:
        fill(store)
        store.scope("acme").thread("big").save({"text": LARGE})
        expected = content(store)
    damage(tmp_path)
    del expected["acme\x1fbig"]

    status = main(["verify", "--store", address, "--repair", f"{tmp_path}/saved.db"])

    assert status == 4
    assert "acme" in capsys.readouterr().out
    with holdfast.open(tmp_path / "saved.db") as saved:
        assert content(saved) == expected


def test_a_repair_within_a_scope_writes_nothing_of_others(path, tmp_path, capsys):
    with holdfast.open(path) as store:
        fill(store)
        acme = store.scope("acme")
        acme.thread("big").save({"text": LARGE})
        expected = content(acme)
        del expected["big"]
    damage(tmp_path)

    repair = ["--repair", f"{tmp_path}/saved.db"]
    status = main(["verify", "--store", path, "--scope", "acme", *repair, "--json"])

    assert status == 4
    [lost] = json.loads(capsys.readouterr().out)["repaired"]["lost"]
    assert lost["thread"] == "big"
    with holdfast.open(tmp_path / "saved.db") as saved:
        assert content(saved) == expected


def damage(folder):
    """Change the text that is to be lost, in the file and in the index of a folder."""
    for path in folder.rglob("*"):
        if path.is_file() and LOST in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(LOST, LOST.upper()))
