"""`holdfast journal`: everything that is recorded on a thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import click

from holdfast._messages.transcript import TranscriptCall
from holdfast._values.records import Entry
from holdfast.cli import _command
from holdfast.cli._completion import THREAD
from holdfast.cli._effects import effect_line
from holdfast.cli._invocation import Invocation
from holdfast.cli._lines import message_rows
from holdfast.cli._resolve import recorded_thread
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Cell, Line, spaced
from holdfast.diff import excerpt
from holdfast.effects import Effect
from holdfast.views.journal import (
    JournalView,
    grant_name,
    journal_document,
    journal_of,
)


@_command.command("journal")
@click.argument("thread", type=THREAD, required=False)
def command(cli: Invocation, *, thread: str | None) -> None:
    """Show what is recorded on a thread beside its checkpoints.

    Of THREAD first what waits: tool calls that began and did not end, calls that the
    model asked for and that have no result yet, and messages that no checkpoint has
    yet. Then the other calls, the grants that are used up, and what your program
    recorded itself. With --verbose also the entries from which all this is read.
    """
    verbose = cli.options.verbose
    with cli.reading() as store:
        asked = recorded_thread(store, thread)
        found = store.runner.run(journal_of, asked.id)
    document = {"thread": asked.id, **journal_document(found, verbose=verbose)}
    lines = list(_lines(cli.out, found, verbose=verbose))
    cli.out.answer("journal/1", document, lines[1:])
    if not lines:
        cli.out.note(f"nothing is recorded on {asked.id} beside its checkpoints")


def _lines(out: Output, found: JournalView, *, verbose: bool) -> Iterator[Line]:
    sections: list[tuple[str, Iterable[Sequence[Cell]]]] = [
        ("calls that began and did not end", _calls(out, found.interrupted)),
        ("calls that wait to be made", _to_make(found.to_make)),
        ("messages in no checkpoint yet", message_rows(found.unsaved, found.position)),
        ("messages after a head that was left", _messages(found.passed_over)),
        ("calls", _calls(out, found.calls)),
        ("grants used up", _grants(out, found.grants)),
        ("entries", _entries(out, found.entries)),
    ]
    if verbose:
        sections.append(("bookkeeping", _entries(out, found.bookkeeping)))
    for title, rows in sections:
        table = list(out.table([("", ""), *row] for row in rows))
        if table:
            yield ()
            yield ((title, "title"),)
            yield from table


def _calls(out: Output, effects: Sequence[Effect]) -> Iterator[list[Cell]]:
    for effect in effects:
        yield [(out.time(effect.at), "faint"), effect_line(out, effect)]


def _to_make(calls: Sequence[TranscriptCall]) -> Iterator[list[Cell]]:
    for call in calls:
        yield [(call.id, "faint"), (call.name, "name"), (excerpt(call.arguments), "")]


def _messages(messages: Sequence[object]) -> Iterator[list[Cell]]:
    """Messages without their positions, which may be taken by others now."""
    for row in message_rows(messages):
        yield row[1:]


def _grants(out: Output, grants: Sequence[Entry]) -> Iterator[list[Cell]]:
    for grant in grants:
        used = (f"by {grant.thread}", "faint")
        yield [
            (out.time(grant.recorded_at), "faint"),
            (grant_name(grant), "name"),
            used,
        ]


def _entries(out: Output, entries: Sequence[Entry]) -> Iterator[list[Cell]]:
    for entry in entries:
        place = f"on {entry.checkpoint}" if entry.checkpoint else ""
        yield [
            (out.time(entry.recorded_at), "faint"),
            spaced([(entry.key, "name"), (place, "faint")]),
            (excerpt(entry.value), ""),
        ]
