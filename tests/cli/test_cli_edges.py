"""Stores that are empty, strange, or have lost a part, are shown all the same."""

from __future__ import annotations

import json

import apsw
import pytest
import stores

import holdfast
from holdfast.cli import main
from inner.cli import size


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)

    def run(command):
        status = main(command.split())
        said = capsys.readouterr()
        return status, said.out or said.err

    return run


def opened():
    return stores.opened("agents.db")


def test_an_empty_store_says_that_it_is(run):
    opened().close()

    assert run("") == (0, "store agents.db\nit has no threads yet\n")
    assert run("threads") == (0, "")
    assert run("log")[0] == 3
    assert run("undo")[1].endswith("the store has no threads yet; save to one first\n")


def test_the_overview_names_no_more_than_it_can_show(run):
    with opened() as store:
        for n in range(25):
            store.thread(f"t{n}").save({"n": n})

    status, lines = run("status")[0], run("status")[1].splitlines()
    cursor = json.loads(run("--json")[1])["cursor"]

    assert (status, len(lines)) == (0, 2 + 20)
    assert lines[2].startswith("t24  @1")
    assert run(f"threads --after {cursor}")[1].startswith("t4 ")


def test_too_many_threads_to_choose_from_are_not_all_listed(run):
    with opened() as store:
        for n in range(9):
            store.thread(f"t{n}").save({"n": n})

    status, said = run("reflog")

    assert status == 2
    assert "one of: t8, t7, t6, t5, t4, ...\n" in said


def test_a_fork_outlives_the_thread_it_came_from(run):
    with opened() as store:
        chat = store.thread("chat")
        chat.save({"n": 1})
        chat.fork("fork").save({"n": 2})
        chat.delete()

    assert "(forked from chat)\n" in run("")[1]
    graph = run("log --graph --oneline fork")
    assert graph == (0, "●  fork@2  (fork)\n●  fork@1\n")


def test_what_was_removed_is_told_from_what_can_be_reached(run):
    with opened() as store:
        chat = store.thread("chat")
        for n in range(5):
            chat.save({"n": n})
        chat.rewind("@~3", hard=True)

    lines = run("reflog chat")[1].splitlines()

    assert lines[0].split()[-1] == "chat@2"
    assert run("log chat --oneline") == (0, "chat@2  (head)\nchat@1\n")


def test_an_agents_checkpoint_is_shown_with_what_it_holds(run):
    with opened() as store:
        store.agents.save(holdfast.Agent(id="a"))
        for text in ("hi", "more"):
            store.conversations.get_or_create("ann", "talk", agent="a")
            store.conversations.add("talk", stores.said("user", text))
            store.agents.checkpoint("a")

    shown, compared = run("show checkpoints:a")[1], run("diff checkpoints:a@1")[1]

    assert "conversations  dict of 1" in shown
    assert "+ conversations.talk.messages[1]" in shown
    assert "+ conversations.talk.messages[1]" in compared
    assert "pin" not in shown + compared
    path = "conversations.talk.messages[0].content"
    assert run(f"show checkpoints:a {path}") == (0, "hi\n")


def test_a_state_that_is_no_mapping_has_changes_and_an_outline(run):
    with opened() as store:
        list_ = store.thread("list")
        list_.save([1, (2, 3)])
        list_.save([1, (2, 3), b"\x00"])

    shown = run("show list")[1]

    assert "+ [2]  b'\\x00'" in shown
    assert shown.endswith("state\n  [1, (2, 3), b'\\x00']\n")
    assert json.loads(run("show list@1 --json")[1])["state"] == [
        1,
        {"$hf.tuple": [2, 3]},
    ]
    assert run("fork list other --set a=1")[0] == 2


def test_times_beyond_the_calendar_are_shown_as_numbers(run):
    with holdfast.open("agents.db", clock=lambda: 1 << 62) as store:
        store.thread("far").save({"n": 1})

    assert str(1 << 62) in run("log far")[1]
    found = json.loads(run("show far --json")[1])
    assert found["checkpoint"]["saved_at"] == 1 << 62


def test_a_range_takes_no_filter(run):
    stores.make_support("agents.db")

    assert run("log support-4812..fix-policy --tag ok")[0] == 2
    assert run("log support-4812..fix-policy --all")[0] == 2
    assert run("log fix-policy..support-4812") == (0, "")


def test_since_may_be_said_as_time_that_has_passed(run):
    with holdfast.open("agents.db") as store:
        store.thread("chat").save({"n": 1})

    assert run("log chat --since 2000-01-01")[1].startswith("chat@1")
    assert main(["log", "chat", "--since", "1 hour ago", "-q"]) == 0


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (2_500_000, "2.5 MB")],
)
def test_sizes_are_rounded_for_people(count, text):
    assert size(count) == text


def test_a_log_of_everything_that_was_rewound_beyond_the_head(run):
    with opened() as store:
        chat = store.thread("chat")
        for n in range(4):
            chat.save({"n": n}, label=f"l{n}")
        chat.rewind("@1")

    lines = run("log chat --all --oneline")[1].splitlines()
    found = json.loads(run("log chat --all --label l3 --json")[1])["checkpoints"]

    assert [line.split()[-1] for line in lines] == ["[l3]", "[l2]", "[l1]", "[l0]"]
    assert lines[-1] == "chat@1              (head) [l0]"
    assert [(c["step"], c["rewound"]) for c in found] == [(4, True)]


def test_a_log_is_told_even_where_messages_are_damaged(run, capsys):
    with opened() as store:
        store.thread("chat").save({"messages": [stores.said("user", "x" * 900)]})
    db = apsw.Connection("agents.db")
    db.execute("update segment set data = zeroblob(length(data))")
    db.close()

    status = main(["log", "chat"])
    said = capsys.readouterr()

    assert (status, said.out) == (0, "chat@1  2026-11-15 10:00:00Z  (head)\n")
    assert said.err.startswith("messages are left out: ")
    assert "holdfast verify" in said.err


def test_a_log_repeats_no_message_and_shows_what_a_message_without_text_holds(run):
    with opened() as store:
        chat = store.thread("chat")
        call = {"id": "c1", "type": "function"}
        call["function"] = {"name": "refund", "arguments": '{"order": 4812}'}
        chat.append(messages=[{"role": "assistant", "tool_calls": [call]}])
        chat.append(messages=[{"role": "tool", "content": {"paid": 129}}])
        chat.save({**chat.load(), "done": True})
        chat.append(messages=[stores.said("user", "thanks\n" * 99)])

    ends = [line.partition("Z")[2].strip() for line in run("log chat")[1].splitlines()]

    assert ends[0] == "(head) user: " + f"{'thanks ' * 99}"[:99].rstrip() + "…"
    assert ends[1:3] == ["", 'tool: {"paid": 129}']
    assert ends[3].startswith("assistant: refund(")


def test_a_document_shows_texts_and_numbers_that_json_has_no_room_for(run):
    with opened() as store:
        said = {"role": "user", "content": "half \ud800 of a pair"}
        spent = {"usage": {"input_tokens": 2**70}}
        store.thread("a").save({"title": "\ud800", "messages": [said]}, metadata=spent)

    for command in ("threads", "status", "log a", "search half"):
        status, said = run(f"{command} --json")
        assert (status, bool(json.loads(said))) == (0, True)
