"""Threads and checkpoints as they are named on the command line."""

from __future__ import annotations

import pytest
import stores

import holdfast
from holdfast.cli import main
from inner.cli import completion, locate, locate_range
from inner.views import short_id


@pytest.fixture
def store(tmp_path):
    with stores.opened(tmp_path / "agents.db") as store:
        yield store


def step(store, text):
    place = locate(store, text)
    return place.thread.id, place.checkpoint.step


def test_a_thread_is_its_head_and_what_stands_behind_an_at_is_a_reference(store):
    chat = store.thread("chat")
    saved = [chat.save({"n": n}, label=f"l{n}", tags=[f"t{n}"]) for n in range(1, 5)]
    chat.rewind("@~1")

    assert {
        text: step(store, text)[1]
        for text in (
            "chat",
            "chat@",
            "chat@~2",
            "chat@^",
            "chat@2",
            "chat@label:l1",
            "chat@tag:t4",
            "chat@{1}",
            "chat@{2026-11-15 10:00:10}",
            f"chat@{saved[3].id}",
            saved[3].id,
            "@~1",
            "label:l2",
        )
    } == {
        "chat": 3,
        "chat@": 3,
        "chat@~2": 1,
        "chat@^": 2,
        "chat@2": 2,
        "chat@label:l1": 1,
        "chat@tag:t4": 4,
        "chat@{1}": 4,
        "chat@{2026-11-15 10:00:10}": 1,
        f"chat@{saved[3].id}": 4,
        saved[3].id: 4,
        "@~1": 2,
        "label:l2": 2,
    }


def test_names_with_an_at_are_found_the_longest_first(store):
    for name, count in (("a", 4), ("a@2", 3), ("a@2@1", 2), ("ann@example.org", 1)):
        for n in range(count):
            store.thread(name).save({"n": n})

    assert step(store, "a@2") == ("a@2", 3)
    assert step(store, "a@2@1") == ("a@2@1", 2)
    assert step(store, "a@2@2") == ("a@2", 2)
    assert step(store, "a@3") == ("a", 3)
    assert step(store, "ann@example.org") == ("ann@example.org", 1)
    assert step(store, "ann@example.org@1") == ("ann@example.org", 1)


def test_a_thread_named_as_an_id_begins_is_the_thread(store):
    saved = store.thread("chat").save({"n": 1})
    store.thread(saved.id[:8]).save({"n": 2})

    assert step(store, saved.id[:8])[0] == saved.id[:8]


def test_an_id_means_the_one_conversation_agent_or_document_that_has_it(store):
    store.conversations.create("trip-7")
    store.conversations.create("desk")
    store.agents.save(holdfast.Agent(id="desk"))
    store.documents.save("plan", {"n": 1})

    assert step(store, "trip-7") == ("conversation:trip-7", 1)
    assert step(store, "trip-7@1") == ("conversation:trip-7", 1)
    assert step(store, "plan") == ("document:plan", 1)
    assert step(store, "agent:desk") == ("agent:desk", 1)
    with pytest.raises(
        holdfast.NotFound, match="conversation:desk, agent:desk"
    ) as told:
        locate(store, "desk")
    assert told.value.matches == ("conversation:desk", "agent:desk")


def test_a_full_name_comes_before_an_id(store):
    store.conversations.create("trip-7")
    store.thread("trip-7").save({"n": 1})

    assert step(store, "trip-7") == ("trip-7", 1)


def test_commands_that_take_a_thread_take_the_id_of_a_conversation(tmp_path, capsys):
    stores.make_travel(tmp_path / "agents.db")
    chosen = ["--store", str(tmp_path / "agents.db")]

    for words in (
        ["reflog", "trip-7"],
        ["journal", "trip-7"],
        ["effects", "trip-7"],
        ["export", str(tmp_path / "x"), "trip-7"],
        ["prune", "--keep-last", "1", "--thread", "trip-7", "--yes"],
        ["erase", "--thread", "trip-7", "--yes"],
    ):
        assert main([*words, *chosen]) == 0, capsys.readouterr().err

    with holdfast.open(tmp_path / "agents.db") as store:
        assert [t.id for t in store.threads()] == ["conversation:trip-8"]


def test_a_message_is_named_as_search_prints_it_and_a_thread_by_its_name(
    tmp_path, capsys
):
    stores.make_travel(tmp_path / "agents.db")
    with holdfast.open(tmp_path / "agents.db") as store:
        store.thread("x[0]").save({"n": 1})
    chosen = ["--store", str(tmp_path / "agents.db")]
    assert main(["search", "9:12", "--conversation", "trip-7", *chosen]) == 0
    printed = capsys.readouterr().out.split()[0]

    assert main(["show", printed, *chosen]) == 0
    assert capsys.readouterr().out == "trip-7[1]  assistant\nBooked.\nLyon, 9:12\n"
    assert main(["show", "x[0]", *chosen]) == 0
    assert "x[0]@1" in capsys.readouterr().out


def test_a_range_has_two_ends_of_which_one_may_be_left_out(store):
    for n in range(4):
        store.thread("chat").save({"n": n})
    store.thread("a..b").save({"n": 0})

    def steps(text):
        ends = locate_range(store, text)
        return ends and [place.checkpoint.step for place in ends]

    assert steps("chat@1..chat@3") == [1, 3]
    assert steps("chat@1..") == [1, 4]
    assert steps("..chat@2") == [4, 2]
    assert steps("chat") is steps("a..b") is None


def test_the_shortest_beginning_of_an_id_that_no_other_has(store):
    ids = [store.thread("chat").save({"n": n}).id for n in range(40)]

    shortest = [short_id(store, id_) for id_ in ids]

    assert [store.get(text).id for text in shortest] == ids
    assert not any(_is_unique(store, text[:-1]) for text in shortest)


def _is_unique(store, text):
    try:
        return bool(store.get(text))
    except holdfast.NotFound:
        return False


def test_completion_offers_what_the_store_has(tmp_path, monkeypatch, capsys):
    stores.make_support(tmp_path / "agents.db")
    monkeypatch.chdir(tmp_path)

    assert complete(monkeypatch, capsys, "log", "s") == ["support-4812"]
    assert complete(monkeypatch, capsys, "log", "fix-policy@t") == ["fix-policy@tag:ok"]
    assert complete(monkeypatch, capsys, "show", "fix-policy@l") == [
        "fix-policy@label:golden"
    ]
    commands = complete(monkeypatch, capsys, "re")
    assert commands == ["reflog", "rewind", "restore", "redo", "resolve"]
    assert "--graph" in complete(monkeypatch, capsys, "log", "--")


def test_completion_offers_agents_and_their_checkpoints(tmp_path, monkeypatch, capsys):
    stores.make_agent(tmp_path / "agents.db")
    monkeypatch.chdir(tmp_path)
    with holdfast.open("agents.db") as store:
        store.agents.restore("planner", "before-paying")

    assert complete(monkeypatch, capsys, "restore", "p") == ["planner"]
    names = complete(monkeypatch, capsys, "restore", "planner", "''")
    assert names == ["automatic", "before-paying", "@3", "@2", "@1"]
    assert complete(monkeypatch, capsys, "restore", "planner", "b") == names[1:2]
    assert complete(monkeypatch, capsys, "restore", "nobody", "b") == []


def test_completion_says_nothing_where_there_is_no_store(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    assert complete(monkeypatch, capsys, "log", "s") == []
    assert list(tmp_path.iterdir()) == []


def complete(monkeypatch, capsys, *words):
    # A busy machine must not decide what is found.
    monkeypatch.setattr(completion, "LIMIT_SECONDS", 20.0)
    monkeypatch.setenv("_HOLDFAST_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["holdfast", *words]))
    assert main([]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return [line.partition(",")[2] for line in said.out.split()]
