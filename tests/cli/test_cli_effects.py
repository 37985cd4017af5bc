"""Effects on the command line: many calls, no checkpoint, hostile text."""

from __future__ import annotations

import json

import pytest
import stores

import holdfast
from holdfast.cli import main


class CommandLine:
    """Runs commands on the store at a path."""

    def __init__(self, path, capsys):
        self.path, self.capsys = path, capsys

    def __call__(self, *arguments):
        assert main([*arguments, "--store", str(self.path)]) == 0
        return self.capsys.readouterr()


@pytest.fixture
def cli(tmp_path, capsys):
    return CommandLine(tmp_path / "agents.db", capsys)


def paying(store, times, **options):
    """A conversation with a payment in each of its steps."""
    run = store.conversations.recorder("c", tools={"pay": stores.pay}, **options)
    run.add(stores.said("user", "Pay them all"))
    run.save()
    for n in range(times):
        run.llm_response(stores.asked(f"call-{n}", "pay", to="bob", amount=n))
        run.tool_result(f"call-{n}", run.call(f"call-{n}"))
    return run


def test_effects_of_a_thread_without_a_checkpoint_are_shown(cli):
    with stores.opened(cli.path) as store:
        run = store.conversations.recorder(
            "c", tools={"pay": stores.pay}, save=holdfast.strategy.never()
        )
        run.llm_response(stores.asked("call-1", "pay", to="bob", amount=5))
        run.call("call-1")

    overview = cli().out
    effects = cli("effects", "conversation:c").out
    journal = json.loads(cli("journal", "conversation:c", "--json").out)

    assert "not saved  2026-11-15 10:02:00Z  waits: 1 unsaved message" in overview
    assert 'pay {"to": "bob", "amount": 5} → {"receipt": "bob-5"}' in effects
    assert [call["call_id"] for call in journal["calls"]] == ["call-1"]
    assert [m["calls"] for m in journal["unsaved_messages"]] == [["pay"]]
    assert journal["to_make"] == []


def test_the_preview_of_a_long_rewind_fits_on_a_screen(cli):
    with stores.opened(cli.path) as store:
        paying(store, 40)

    shown = cli("rewind", "conversation:c@1", "--dry-run").out.splitlines()
    whole = cli("rewind", "conversation:c@1", "--dry-run", "--diff").out.splitlines()

    assert "  ~ messages  80 removed" in shown
    assert "  40 effects stay behind:" in shown
    assert "and 35 earlier: holdfast effects conversation:c --since @1" in "".join(
        shown
    )
    assert len(shown) < 15
    assert len(whole) > 80


def test_the_listing_that_a_preview_names_has_all_effects(cli):
    with stores.opened(cli.path) as store:
        paying(store, 7)

    listed = cli("effects", "conversation:c", "--since", "@1").out

    assert len(listed.splitlines()) == 7


def test_a_call_that_was_made_again_stays_behind_once(cli):
    with stores.opened(cli.path) as store:
        run = paying(store, 0)
        run.llm_response(stores.asked("call-1", "pay", to="bob", amount=5))
        with pytest.raises(stores.Killed):
            run.call("call-1", stores.kill)
        run.tool_result("call-1", run.call("call-1", again=True))

    preview = json.loads(cli("rewind", "conversation:c@1", "-n", "--json").out)
    listed = cli("effects", "conversation:c").out

    assert [e["attempt"] for e in preview["left_behind"]] == [2]
    assert len(listed.splitlines()) == 2


def test_an_effect_that_was_taken_over_says_so(cli):
    with stores.opened(cli.path) as store:
        run = paying(store, 1)
        run.resume(at="@1", tell=False)
        run.llm_response(stores.asked("other", "pay", to="bob", amount=0))
        run.tool_result("other", run.call("other"))

    listed = cli("effects", "conversation:c").out

    assert "taken over from an earlier call of conversation:c" in listed


def test_an_effect_that_was_undone_does_not_stay_behind(cli):
    @holdfast.once(undo=lambda _: None)
    def pay(to, amount):
        return amount

    with stores.opened(cli.path) as store:
        run = store.conversations.recorder("c", tools={"pay": pay})
        run.add(stores.said("user", "Pay"))
        run.save()
        run.llm_response(stores.asked("call-1", "pay", to="bob", amount=5))
        run.tool_result("call-1", run.call("call-1"))
        made = store.thread("conversation:c").get()
        run.resume(at="@1", compensate=True, tell=False)
        store.thread("conversation:c").rewind(made)

    assert "undone" in cli("effects", "conversation:c").out
    assert "stay" not in cli("rewind", "conversation:c@1", "--dry-run").out


def test_hostile_arguments_do_not_reach_the_terminal(cli):
    with stores.opened(cli.path) as store:
        run = store.conversations.recorder("c", tools={"pay": stores.pay})
        run.llm_response(stores.asked("1", "pay", to=stores.HOSTILE, amount=1))
        run.tool_result("1", run.call("1"))
        store.thread("conversation:c").record(stores.HOSTILE, stores.HOSTILE)

    said = [
        cli("effects", "conversation:c").out,
        cli("journal", "conversation:c").out,
        cli("journal", "conversation:c", "--verbose").out,
        cli("fork", "conversation:c", "f", "--dry-run").out,
    ]

    assert not any(sign in "".join(said) for sign in "\x1b\x9b\x07\x08\r\u202e")
