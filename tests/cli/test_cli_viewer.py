"""The commands that the viewer names: resolve, fork at a path, export as a page."""

from __future__ import annotations

import json

import pytest

import holdfast
from holdfast.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "agents.db"))
    monkeypatch.chdir(tmp_path)

    def run(*words):
        status = main(list(words))
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.fixture
def store(run):
    with holdfast.open("agents.db") as opened:
        yield opened


class Killed(BaseException):
    """Ends a program in the middle of a tool."""


def interrupt(store, call):
    def pay(to):
        raise Killed

    recorder = store.conversations.recorder("c")
    recorder.add({"role": "user", "content": "Pay Ada"})
    made = {"id": call, "function": {"name": "pay", "arguments": '{"to": "ada"}'}}
    recorder.llm_response({"role": "assistant", "tool_calls": [made]})
    with pytest.raises(Killed):
        recorder.call(call, pay)


def test_a_call_that_did_not_end_is_resolved_once(run, store):
    interrupt(store, "p1")
    words = ("resolve", "conversation:c", "p1")

    done = run(*words, "--result", '{"paid": 5}', "--json")
    again = run(*words, "--error", "no")
    unknown = run("resolve", "conversation:c", "p2", "--error", "no")
    both = run(*words, "--error", "no", "--result", "1")

    [effect] = store.thread("conversation:c").effects()
    assert (done[0], json.loads(done[1])["status"]) == (0, "completed")
    assert (effect.status, effect.result) == ("completed", {"paid": 5})
    assert [answer[0] for answer in (again, unknown, both)] == [5, 3, 2]


def test_a_call_that_failed_is_made_again_by_its_recorder(run, store):
    interrupt(store, "p1")
    run("resolve", "conversation:c", "p1", "--error", "the bank was closed")

    recorder = store.conversations.recorder("c")
    result = recorder.call("p1", lambda to: f"paid {to}")

    assert result == "paid ada"


def test_a_fork_sets_values_at_paths(run, store):
    store.thread("case").save({"plan": {"step": 1}, "list": [1]})

    done = run("fork", "case", "new", "--set", "plan.step=2", "--set", "/list/1=x")
    nowhere = run("fork", "case", "other", "--set", "none.deeper=2")

    assert done[0] == 0
    assert store.thread("new").load() == {"plan": {"step": 2}, "list": [1, "x"]}
    assert (nowhere[0], store.thread("other").about) == (2, None)


def test_a_page_is_written_once_and_without_what_is_redacted(run, store, tmp_path):
    store.thread("case").save({"messages": [{"role": "user", "content": "sk-1234"}]})
    words = ("export", "--html", "case.html", "case", "--redact", r"sk-\d+")

    made, again = run(*words), run(*words)
    nothing = run("export", "--html", "all.html")

    text = (tmp_path / "case.html").read_text()
    assert (made[0], again[0], nothing[0]) == (0, 5, 2)
    assert "[redacted]" in text
    assert "sk-1234" not in text


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--redact", "("), 2),
        (("--socket", "/tmp/x", "--port", "1"), 2),
        (("--write", "--read-only"), 6),
        (("--store", "nothing.db"), 3),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_listens(run, words, status):
    assert run("serve", "--no-open", *words)[0] == status
