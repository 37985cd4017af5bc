"""Which store a command works on, and how everything that goes wrong ends."""

from __future__ import annotations

import json

import apsw
import pytest
import stores

import holdfast
from holdfast.cli import main
from holdfast.errors import HoldfastError
from inner.cli import MEANINGS, status_of


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """A folder of its own, without variables that name a store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)


@pytest.fixture
def run(capsys):
    def run(*arguments):
        status = main(arguments)
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def make(path):
    """A store with one thread, of the name that its address has."""
    with holdfast.open(path) as store:
        store.thread(str(path)).save({"n": 1})


def found(run, *arguments):
    status, out, _ = run("threads", "--json", *arguments)
    assert status == 0
    return [thread["id"] for thread in json.loads(out)["threads"]]


def error(run, *arguments):
    status, out, err = run(*arguments, "--json")
    assert out == ""
    return status, json.loads(err)["error"]["code"]


# --- finding --------------------------------------------------------------------------


def test_a_store_is_found_by_option_then_variable_then_folder_then_file(
    run, tmp_path, monkeypatch
):
    inside = tmp_path / "project" / "deep"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    make("agents.db")
    assert found(run) == ["agents.db"]

    (tmp_path / "project" / ".holdfast").mkdir()
    make(f"{tmp_path}/project/.holdfast/agents.db")
    assert found(run) == [f"{tmp_path}/project/.holdfast/agents.db"]

    make("variable.db")
    monkeypatch.setenv("HOLDFAST_STORE", "variable.db")
    assert found(run) == ["variable.db"]

    make("option.db")
    assert found(run, "--store", "option.db") == ["option.db"]


def test_a_folder_of_text_is_a_store_too(run):
    make("dir:texts")
    make("dir:.holdfast")

    assert found(run) == ["dir:.holdfast"]
    assert found(run, "--store", "texts") == ["dir:texts"]
    assert found(run, "--store", "dir:texts") == ["dir:texts"]


def test_options_may_stand_before_or_after_the_command(run, tmp_path):
    (tmp_path / "sub").mkdir()
    make("sub/agents.db")

    before = run("--store", "sub/agents.db", "threads", "--prefix", "sub")
    after = run("threads", "--prefix", "sub", "-C", "sub")

    assert before == after
    assert before[1].startswith("sub/agents.db  @1")


def test_a_new_store_is_found_while_its_program_still_runs(run):
    with holdfast.open("agents.db") as store:
        store.thread("young").save(1)

        assert found(run) == ["young"]


def test_a_file_of_somebody_else_is_not_taken_for_a_store(run):
    db = apsw.Connection("agents.db")
    db.execute("create table mine (x)")
    db.close()
    make("agent.db")

    assert found(run) == ["agent.db"]
    assert error(run, "threads", "--store", "agents.db") == (7, "format_mismatch")


def test_looking_for_a_store_never_makes_one(run, tmp_path):
    commands = [
        ("threads",),
        ("threads", "--store", "new.db"),
        ("tag", "x", "y", "--store", "new.db"),
        ("tag", "x", "y", "--store", "dir:new"),
        ("log", "--store", "sqlite:new.db"),
        ("tag", "x", "y", "--store", "sqlite://new.db"),
        (),
    ]

    ended = [error(run, *command) for command in commands]

    assert ended == [(3, "store_not_found")] * len(commands)
    assert list(tmp_path.iterdir()) == []


# --- ends -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["nonsense"], (2, "usage")),
        (["\udcff"], (2, "usage")),
        (["show", "\udcff"], (2, "unstorable")),
        (["log", "--nonsense"], (2, "usage")),
        (["--nonsense"], (2, "usage")),
        (["diff"], (2, "usage")),
        (["threads", "--wait", "soon"], (2, "usage")),
        (["-C", "nowhere", "threads"], (2, "usage")),
        (["show", "nobody"], (3, "not_found")),
        (["show", "nobody@3"], (3, "not_found")),
        (["show", "support-4812@label:none"], (3, "not_found")),
        (["show", "019a86b5"], (3, "ambiguous")),
        (["show", "support-4812@~x"], (2, "unstorable")),
        (["fork", "support-4812", "fix-policy"], (5, "thread_exists")),
        (["-R", "tag", "support-4812", "x"], (6, "read_only")),
        (["tag", "support-4812", "x", "--read-only"], (6, "read_only")),
        (["threads", "--store", "ftp://x"], (6, "unsupported")),
        (["tag", "x", "y", "--store", "mine:x"], (6, "unsupported")),
        (["threads", "--store", "text.txt"], (7, "format_mismatch")),
    ],
)
def test_errors_end_with_their_status_and_are_told_as_json(
    run, tmp_path, command, expected
):
    stores.make_support(tmp_path / "agents.db")
    (tmp_path / "text.txt").write_text("This is no database, but long enough." * 9)

    assert error(run, *command) == expected


def test_an_error_says_what_to_type_and_not_what_to_call(run, tmp_path):
    stores.make_support(tmp_path / "agents.db")

    said = [
        run("show", "support-4812@99")[2],
        run("show", "support-4812@{99}")[2],
        run("show", "support-4812@ffffff")[2],
    ]

    assert [text.rpartition("; ")[2] for text in said] == [
        "see holdfast log --all\n",
        "see holdfast reflog\n",
        "see holdfast log --all\n",
    ]


def test_an_error_that_nobody_expected_is_told_as_ours(run, tmp_path, monkeypatch):
    stores.make_support(tmp_path / "agents.db")
    monkeypatch.setenv("COLUMNS", "80")

    def broken(*_args: object, **_options: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(holdfast, "open", broken)

    assert error(run, "threads") == (70, "internal")
    assert "internal error: ZeroDivisionError: boom" in run("threads")[2]
    assert "Traceback" in run("threads", "-v")[2]


@pytest.mark.parametrize(
    ("code", "status"), [("disk_full", 74), ("cannot_open", 6), ("whatever", 70)]
)
def test_errors_of_no_class_of_their_own_go_by_their_code(code, status):
    assert status_of(HoldfastError("text", code=code)) == status
    assert status in MEANINGS


def test_a_store_is_changed_by_no_command_that_only_looks(run, tmp_path):
    stores.make_support(tmp_path / "agents.db")
    before = (tmp_path / "agents.db").read_bytes()

    for command in ("threads", "log", "show fix-policy", "diff fix-policy@1", ""):
        assert run(*command.split())[0] == 0

    assert (tmp_path / "agents.db").read_bytes() == before
