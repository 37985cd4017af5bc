"""Restoring an agent on the command line: large agents, lost agents, programs."""

from __future__ import annotations

import json

import pytest
import stores

import holdfast
from holdfast.cli import main


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agents.db"


@pytest.fixture
def cli(path, capsys):
    def run(*arguments):
        assert main([*arguments, "--store", str(path)]) == 0
        return capsys.readouterr().out

    return run


def busy_since_a_checkpoint(store, conversations):
    """An agent that has paid in many new conversations since its checkpoint."""
    store.agents.save(holdfast.Agent(id="clerk"))
    store.agents.checkpoint("clerk", "before")
    for n in range(conversations):
        run = store.conversations.recorder(
            f"c{n}", agent="clerk", tools={"pay": stores.pay}
        )
        run.llm_response(stores.asked("1", "pay", to="bob", amount=n))
        run.tool_result("1", run.call("1"))


def test_the_preview_of_a_large_restore_fits_on_a_screen(cli, path):
    with stores.opened(path) as store:
        busy_since_a_checkpoint(store, 8)

    summary = cli("restore", "clerk", "before", "-n").splitlines()
    whole = cli("restore", "clerk", "before", "-n", "--all").splitlines()
    done = cli("restore", "clerk", "before", "--yes").splitlines()

    assert "  - 8 conversations removed: c7, c6, c5, c4, c3, ..." in summary
    assert "    and 3 earlier: holdfast restore clerk @1 --dry-run --all" in summary
    assert "  - 8 conversations removed: c7, c6, c5, c4, c3, c2, c1, c0" in whole
    paid = [_payments(said) for said in (summary, whole, done)]
    assert list(map(len, paid)) == [5, 8, 8]
    assert paid[0] == paid[1][3:]


def _payments(lines):
    return [line for line in lines if "pay " in line]


def test_a_program_gets_the_recovery_checkpoint_and_restores_it(cli, path):
    stores.make_agent(path)

    done = json.loads(cli("restore", "planner", "before-paying", "-y", "--json"))
    back = json.loads(cli("restore", "planner", done["recovery"]["id"], "-y", "--json"))

    assert (done["dry_run"], done["recovery"]["kind"]) == (False, "recovery")
    assert (done["revived"], done["removed"]) == (["old-plans"], ["train"])
    assert [effect["call_id"] for effect in done["left_behind"]] == ["c1", "c2"]
    assert (back["revived"], back["removed"]) == (["train"], ["old-plans"])


def test_an_agent_of_which_only_checkpoints_are_left_is_restored(cli, path):
    with stores.opened(path) as store:
        store.agents.save(holdfast.Agent(id="clerk", name="Clerk"))
        store.agents.checkpoint("clerk", "alive")
        store.delete("agent:clerk")

    listed = cli("restore", "clerk")
    done = cli("restore", "clerk", "alive", "--yes")

    assert "@1" in listed
    assert "alive" in listed
    assert "~ the agent itself" in done
    with holdfast.open(path) as store:
        assert store.agents.load("clerk").name == "Clerk"


def test_a_long_list_of_checkpoints_names_the_command_for_the_rest(cli, path):
    with stores.opened(path) as store:
        store.agents.save(holdfast.Agent(id="my clerk"))
        for _ in range(22):
            store.agents.checkpoint("my clerk", keep=21)

    lines = cli("restore", "my clerk").splitlines()

    steps = [line.split()[0] for line in lines[:20]]
    assert steps == [f"@{n}" for n in range(22, 2, -1)]
    assert lines[20:] == [
        "and more: holdfast log 'checkpoints:my clerk'",
        "to restore the first: holdfast restore 'my clerk' @22",
    ]
    assert "would restore my clerk" in cli("restore", "my clerk", "@3", "--dry-run")


def test_hostile_names_do_not_reach_the_terminal(cli, path):
    with stores.opened(path) as store:
        agent = stores.HOSTILE
        store.agents.save(holdfast.Agent(id=agent))
        store.agents.checkpoint(agent, stores.HOSTILE, description=stores.HOSTILE)
        store.conversations.create(stores.HOSTILE, agent=agent)

    said = [
        cli("restore", stores.HOSTILE),
        cli("restore", stores.HOSTILE, "@1", "--dry-run", "--all"),
        cli("restore", stores.HOSTILE, "@1", "--yes"),
    ]

    assert not any(sign in "".join(said) for sign in "\x1b\x9b\x07\x08\r\u202e")
