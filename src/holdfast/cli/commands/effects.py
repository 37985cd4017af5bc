"""`holdfast effects`: the tool calls of a thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._values.reference import HEAD
from holdfast.cli import _command
from holdfast.cli._completion import REFERENCE, THREAD
from holdfast.cli._effects import effect_line
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import flag, option
from holdfast.cli._resolve import locate_in, recorded_thread
from holdfast.cli.terminal.tables import Cell
from holdfast.effects import Effect
from holdfast.errors import NotFound
from holdfast.views.effects import effect_document
from holdfast.views.references import is_on_line, shown_reference


@_command.command("effects", stream=True)
@click.argument("thread", type=THREAD, required=False)
@flag(
    "--left-behind",
    help="Those of THREAD and its forks that are not on its line any more.",
)
@option("--since", "REF", "Those that a rewind to REF leaves behind.", type=REFERENCE)
@option("--at", "REF", "Up to REF instead of the head.", type=REFERENCE)
def command(
    cli: Invocation,
    *,
    thread: str | None,
    left_behind: bool,
    since: str | None,
    at: str | None,
) -> None:
    """List tool calls and what came of them, oldest first.

    Those on the line of THREAD. A call that began and did not end is unknown: it may or
    may not have happened. With --left-behind, those that happened and that the state
    does not show, because the thread was rewound or they belong to a fork.
    """
    with cli.reading() as store:
        asked = recorded_thread(store, thread)
        found = asked.effects(
            HEAD if at is None else locate_in(store, asked, at),
            since=None if since is None else locate_in(store, asked, since),
            left_behind=left_behind,
        )
        cli.out.listing(
            ("effect", "effects"),
            map(effect_document, found),
            cli.out.table(_rows(cli, store, asked, found)),
            thread=asked.id,
            left_behind=left_behind,
        )
    if not found:
        which = "no effects left behind" if left_behind else "no effects"
        cli.out.note(f"{asked.id} has {which}")


def _rows(
    cli: Invocation, store: Store, asked: Thread, effects: Sequence[Effect]
) -> Iterator[list[Cell]]:
    places: dict[str | None, str] = {None: ""}
    for effect in effects:
        if effect.checkpoint not in places:
            places[effect.checkpoint] = _place(store, asked, effect)
        yield [
            (cli.out.time(effect.at), "faint"),
            (places[effect.checkpoint], "reference"),
            effect_line(cli.out, effect),
        ]


def _place(store: Store, asked: Thread, effect: Effect) -> str:
    """The first checkpoint that has the call, as one can name it."""
    try:
        checkpoint = store.get(str(effect.checkpoint))
    except NotFound:
        return "in no checkpoint"
    if is_on_line(asked, checkpoint):
        return f"@{checkpoint.step}"
    return shown_reference(store, checkpoint, store.thread(effect.thread))
