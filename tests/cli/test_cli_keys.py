"""Encrypted stores on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import holdfast
from holdfast.cli import main
from holdfast.keys import OwnerKeyFile


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Runs commands on an encrypted store, each with its status and its document."""
    monkeypatch.chdir(tmp_path)
    assert main(["key", "init", "key"]) == 0
    monkeypatch.setenv("HOLDFAST_KEY_FILE", "key")
    with holdfast.open("agents.db", key=Path("key")) as store:
        store.thread("chat").append(messages=[{"role": "user", "content": "hello"}])

    def run(*arguments):
        capfd.readouterr()
        status = main([*arguments, "--json"])
        printed = capfd.readouterr()
        return status, json.loads(printed.out or printed.err)

    return run


def test_every_command_takes_the_key_from_the_environment(run, monkeypatch):
    assert run("log", "chat")[0] == 0
    assert run("key", "check") == (0, run("key", "check")[1])
    assert run("backup", "copy.db")[0] == 0
    assert run("salvage", "salvaged.db")[1]["checkpoints"] == 1
    monkeypatch.delenv("HOLDFAST_KEY_FILE")

    status, said = run("log", "chat")

    assert (status, said["error"]["code"]) == (6, "key_needed")
    found = {f["what"]: f["state"] for f in run("doctor")[1]["findings"]}
    assert found["opening"] == "bad"


@pytest.mark.processes
def test_a_key_is_rotated_to_another_file_and_to_a_passphrase(run, monkeypatch):
    assert run("key", "init", "new")[0] == 0
    assert run("key", "rotate", "new")[0] == 0
    assert run("key", "check")[1]["error"]["code"] == "wrong_key"
    monkeypatch.setenv("HOLDFAST_KEY_FILE", "new")
    with holdfast.open("agents.db", key=Path("new")) as store:
        store.rotate_key("a passphrase")
    monkeypatch.delenv("HOLDFAST_KEY_FILE")
    monkeypatch.setenv("HOLDFAST_PASSPHRASE", "a passphrase")

    assert run("key", "check")[1]["encrypted"]
    found = {f["what"]: f["found"] for f in run("doctor")[1]["findings"]}
    assert found["encryption"] == "by a key"


def test_a_store_gets_new_keys_while_it_is_used(run, tmp_path):
    assert run("key", "init", "new")[0] == 0
    with holdfast.open("agents.db", key=Path("key")) as store:
        assert run("key", "rekey", "new", "--to", "new.db")[1]["threads"] == 1
        store.thread("chat").append(messages=["more"])
        store.thread("other").save({"n": 1})
    assert run("key", "rekey", "new", "--to", "new.db")[1]["threads"] == 2

    with (
        holdfast.open("agents.db", key=Path("key")) as old,
        holdfast.open("new.db", key=Path("new")) as new,
    ):
        assert new.thread("chat").load() == old.thread("chat").load()
        assert new.changes().items == old.changes().items
        assert new.verify().ok
    assert run("key", "rekey", "new")[0] == 2
    with pytest.raises(holdfast.Unsupported):
        holdfast.open("new.db", key=Path("key"))


def test_a_seal_tells_that_an_older_file_was_put_back(run, tmp_path):
    older = (tmp_path / "agents.db").read_bytes()
    run("label", "chat", "done")
    (tmp_path / "seal").write_text(run("seal")[1]["seal"])
    assert run("verify", "--seal", "seal")[0] == 0

    (tmp_path / "agents.db").write_bytes(older)

    status, said = run("verify", "--seal", "seal")
    assert status == 4
    assert "put back" in said["problems"][0]["what"]


def test_a_key_file_with_secrets_of_owners_is_recognised(run, monkeypatch):
    assert run("key", "init", "owners", "--owners")[0] == 0
    assert run("key", "rotate", "owners")[0] == 0
    monkeypatch.setenv("HOLDFAST_KEY_FILE", "owners")
    with holdfast.open("agents.db", key=OwnerKeyFile("owners")) as store:
        store.thread("of ann", owner="ann").save({"n": 1})

    status, receipt = run("erase", "--owner", "ann", "--yes")

    assert (status, receipt["backups"]) == (0, "unreadable")
    assert receipt["signature"]
