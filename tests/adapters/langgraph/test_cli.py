"""The command line shows the threads of graphs as messages and steps."""

import json

import pytest

import holdfast
from adapters.langgraph import graphs
from adapters.langgraph.graphs import say, thread
from holdfast.adapters.langgraph import HoldfastSaver, HoldfastStore
from holdfast.cli import main
from inner.views import DiffQuery, LogQuery, Showing, diff_document, log_document


@pytest.fixture
def run(tmp_path, capsysbinary):
    with HoldfastSaver(tmp_path / "agents.db") as saver:
        graph = graphs.chat().compile(checkpointer=saver)
        graph.invoke(say("hello"), thread("t"))
        graph.invoke(say("again"), {**thread("t"), "metadata": {"user": "ann"}})
        graph.update_state(thread("t"), say("and then"), as_node="model")
        graphs.spreading().compile(checkpointer=saver).invoke({}, thread("s"))

    def run(*arguments):
        place = ["--store", str(tmp_path / "agents.db"), "--ascii"]
        assert main([*place, *arguments]) == 0
        return capsysbinary.readouterr().out.decode()

    return run


def steps(text):
    """What the lines of a log say after the reference and the time."""
    return [line.partition("Z")[2].strip() for line in text.splitlines()]


def test_a_log_shows_the_nodes_and_what_was_said(run):
    assert steps(run("log", "t")) == [
        "(head) update user: and then",
        'model assistant: You said: again user="ann"',
        '__start__ user: again user="ann"',
        'input user="ann"',
        "model assistant: You said: hello",
        "__start__ user: hello",
        "input",
    ]
    assert steps(run("log", "s"))[:-1] == ["(head) join", "work", "plan", "__start__"]
    assert 'source="loop" step=1 parents={}' in run("log", "t", "--verbose")


def test_differences_are_those_of_the_state(run):
    changes = run("diff", "t@5", "t@6").splitlines()[1:]

    assert changes[0].startswith("+ messages[3]")
    assert changes[1:] == ["1 added, 0 removed, 0 changed"]
    assert "__checkpoint__.versions" in run("diff", "t@5", "t@6", "--bookkeeping")
    assert "/__checkpoint__/versions" in run("diff", "t@5", "t@6", "--json-patch")
    shown = run("log", "t", "--changes")
    assert "+ __start__" in shown
    assert "- __start__" not in shown
    assert "branch:to" not in shown


def test_a_checkpoint_is_shown_with_its_node(run):
    shown = run("show", "t@6")

    assert "node        model" in shown
    assert "source=" not in shown
    assert "__checkpoint__" not in shown
    assert "__checkpoint__" in run("show", "t@6", "--bookkeeping")
    assert "[3]" in run("show", "t", "--messages")
    assert "You said: hello" in run("search", "hello")


def test_the_nodes_are_in_the_document(run):
    found = json.loads(run("--json", "log", "s"))["checkpoints"]

    assert [checkpoint["nodes"] for checkpoint in found] == [
        ["join"],
        ["work"],
        ["plan"],
        ["__start__"],
        [],
    ]


def test_a_node_that_is_sent_tasks_again_is_shown_again(run, tmp_path):
    with HoldfastSaver(tmp_path / "agents.db") as saver:
        graphs.spreading().compile(checkpointer=saver).invoke({}, thread("s"))

    assert steps(run("log", "s"))[:4] == ["(head) join", "work", "plan", "__start__"]


def test_the_log_of_the_viewer_has_the_nodes_and_what_they_changed(run, tmp_path):
    with holdfast.open(tmp_path / "agents.db") as store:
        found = store.runner.run(log_document, LogQuery(thread="s"), Showing())
        ids = [row["id"] for row in found["rows"]]
        asked = DiffQuery(start=ids[2], to=ids[1])
        changes = store.runner.run(diff_document, asked, Showing())["changes"]

    assert [row["text"] for row in found["rows"]] == [
        "join: log",
        "work: log",
        "plan: log",
        "__start__: __start__",
        "input: __start__",
    ]
    assert {change["path"][0] for change in changes} == {"log"}


def test_the_vectors_of_an_item_are_bookkeeping(run, tmp_path):
    index = {"dims": 1, "embed": lambda texts: [[len(text)] for text in texts]}
    with HoldfastStore(tmp_path / "agents.db", index=index) as memory:
        memory.put(("a",), "k", {"text": "one"})
        memory.put(("a",), "k", {"text": "other"})

    shown = run("show", "item:a/k")

    assert '~ text  "one" -> "other"' in shown
    assert "__vectors__" not in shown
    assert "__vectors__" in run("show", "item:a/k", "--bookkeeping")
