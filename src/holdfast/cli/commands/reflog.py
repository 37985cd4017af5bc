"""`holdfast reflog`: every move of a thread's head."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import click

from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._engine.threads.references import HEAD_MOVES
from holdfast._values.records import Move
from holdfast.cli import _command
from holdfast.cli._completion import THREAD
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import limit_option
from holdfast.cli._resolve import thread_named
from holdfast.cli.terminal.tables import Cell
from holdfast.errors import NotFound
from holdfast.views.documents import move_document
from holdfast.views.references import shown_reference

CHUNK = 200


@_command.command("reflog", stream=True)
@click.argument("thread", type=THREAD, required=False)
@limit_option(50)
def command(cli: Invocation, *, thread: str | None, limit: int) -> None:
    """List the moves of a thread's head, newest first.

    THREAD@{n} is the head before its last n moves: a checkpoint that was rewound or
    undone can still be reached with it.
    """
    with cli.reading() as store:
        asked = thread_named(store, thread)
        moves = list(islice(_head_moves(asked), limit))
        cli.out.listing(
            ("move", "moves"),
            map(move_document, moves),
            cli.out.table(
                _row(cli, store, asked, *numbered) for numbered in enumerate(moves)
            ),
            schema="reflog/1",
            thread=asked.id,
        )


def _head_moves(thread: Thread) -> Iterator[Move]:
    before: int | None = None
    while True:
        page = thread.moves(CHUNK, before=before)
        yield from (move for move in page if move.kind in HEAD_MOVES)
        before = page.cursor
        if before is None:
            return


def _row(
    cli: Invocation, store: Store, thread: Thread, number: int, move: Move
) -> list[Cell]:
    return [
        (f"{thread.id}@{{{number}}}", "reference"),
        (cli.out.time(move.moved_at), "faint"),
        (move.kind, ""),
        (_target(store, thread, move), "name"),
    ]


def _target(store: Store, thread: Thread, move: Move) -> str:
    try:
        return shown_reference(store, thread.get(str(move.target)), thread)
    except NotFound:
        return "removed since"
