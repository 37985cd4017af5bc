"""Listings in pages: each says how to go on, and together they have all there is."""

from __future__ import annotations

import json
import re
import shlex

import pytest
import stores

from holdfast.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)

    def run(*arguments):
        status = main(arguments)
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def pages_of(run, *arguments):
    """The lines of all pages, each of which was told how to go on."""
    lines, option = [], ""
    while option is not None:
        _, out, err = run(*arguments, *shlex.split(option))
        lines += out.splitlines()
        option = err.partition("go on with ")[2] or None
    return lines


def names(lines):
    """What each line is about; between the checkpoints of a graph, some have none."""
    found = (re.sub("^[^0-9a-z]+", "", line).partition("  ")[0] for line in lines)
    return [name for name in found if name]


@pytest.mark.parametrize("how", [(), ("--graph",), ("--all",)])
def test_a_log_in_pages_has_what_the_whole_has(run, how):
    with stores.opened("agents.db") as store:
        chat = store.thread("my chat")
        for n in range(5):
            chat.save({"n": n})
        fork = chat.fork("other's", at="@3")
        for n in range(3):
            fork.save({"n": -n})
            chat.save({"n": 10 + n})
        chat.rewind("@6")
        chat.save({"again": True})

    whole = names(run("log", "my chat", *how)[1].splitlines())

    assert names(pages_of(run, "log", "my chat", *how, "-n", "2")) == whole
    assert len(whole) >= 7


def test_a_range_in_pages_has_what_the_whole_has(run):
    with stores.opened("agents.db") as store:
        for n in range(7):
            store.thread("chat").save({"n": n})

    found = names(pages_of(run, "log", "chat@2..chat@6", "-n", "2"))

    assert found == [f"chat@{step}" for step in (6, 5, 4, 3)]


def test_a_log_goes_on_after_what_has_a_name_there_and_nothing_else(run):
    with stores.opened("agents.db") as store:
        for name in ("chat", "other"):
            for n in range(4):
                store.thread(name).save({"n": n}, label=f"step-{n + 1}")

    def listed(*option):
        status, out, _ = run("log", "chat", "--oneline", *option)
        return status, [line.split()[0] for line in out.splitlines()]

    for name in ("chat@3", "@3", "chat@label:step-3", "label:step-3"):
        assert listed("--before", name) == (0, ["chat@2", "chat@1"])
    for name in ("other@3", "chat@9", "nothing"):
        assert listed("--before", name) == (3, [])
        assert listed("--before", name, "--graph") == (3, [])


def test_a_search_in_pages_has_all_matches_and_says_when_there_are_no_more(run):
    with stores.opened("agents.db") as store:
        for n in range(4):
            said = {"role": "user", "content": f"hi {n}"}
            store.thread("chat").append(messages=[said])

    found = names(pages_of(run, "search", "hi", "-n", "3"))
    whole = json.loads(run("search", "hi", "-n", "4", "--json")[1])
    status, out, err = run("search", "hello")

    assert found == ["chat[3]", "chat[2]", "chat[1]", "chat[0]"]
    assert (whole["more"], whole["cursor"]) == (False, None)
    assert (status, out, "part" in err) == (1, "", True)
