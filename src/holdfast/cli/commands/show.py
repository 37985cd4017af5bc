"""`holdfast show`: one checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import cast

import click
import orjson

from holdfast._values.paths import find_at, parse_path
from holdfast._values.records import Checkpoint
from holdfast.cli import _command
from holdfast.cli._completion import REFERENCE
from holdfast.cli._invocation import Invocation
from holdfast.cli._lines import change_lines, marks, message_rows
from holdfast.cli._options import flag
from holdfast.cli._resolve import locate
from holdfast.cli._text import pairs, size, time
from holdfast.cli._waiting import waiting_lines
from holdfast.cli.terminal.escape import escaped
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Cell, Line, spaced
from holdfast.diff import Diff, diff, excerpt
from holdfast.errors import NotFound
from holdfast.views.differences import change_documents, state_before
from holdfast.views.documents import checkpoint_document, plain
from holdfast.views.messages import message_documents
from holdfast.views.references import Revision, shown_reference
from holdfast.views.waiting import ThreadWaits, waiting_at, waiting_documents

MESSAGES = "messages"
COUNTED = frozenset({list, tuple, dict, set, frozenset})


@_command.command("show")
@click.argument("ref", type=REFERENCE)
@click.argument("path", required=False)
@flag("--state", "whole", help="Print the whole state.")
@flag("--messages", help="Print the messages, one line each.")
def command(
    cli: Invocation, *, ref: str, path: str | None, whole: bool, messages: bool
) -> None:
    """Show the checkpoint REF, what it changed, and its state.

    If it is the head of a thread, shows also what the thread waits for: tool calls that
    began and did not end, messages that no checkpoint has yet, a paused run.

    With a PATH such as messages[3].content or /messages/3/content, only the value at
    that path is printed. With --messages, PATH is the list of messages, which is
    `messages` by default.
    """
    with cli.reading() as store:
        target = locate(store, ref)
        state = store.load(target.checkpoint)
        if messages:
            _show_messages(cli, target, _at(state, path or MESSAGES, ref))
            return
        if path is not None or whole:
            value = _at(state, path or "", ref)
            about = {"checkpoint": target.checkpoint.id, "path": path or ""}
            document = {**about, "value": plain(value)}
            cli.out.answer("value/1", document, _value_lines(value))
            return
        changes = diff(state_before(store, target.checkpoint, state), state)
        reference = shown_reference(store, target.checkpoint, target.thread)
        waiting = waiting_at(store, target)
        document = {
            "reference": reference,
            "checkpoint": checkpoint_document(target.checkpoint),
            "waiting": waiting_documents(waiting),
            "changes": change_documents(changes),
            "state": plain(state),
        }
        lines = chain(
            _lines(cli.out, target.checkpoint, reference),
            _waiting(cli.out, waiting),
            _changes(cli.out, changes),
            _outline(cli.out, state),
        )
        cli.out.answer("show/1", document, lines)


def _show_messages(cli: Invocation, target: Revision, found: object) -> None:
    if not isinstance(found, list | tuple):
        raise click.UsageError("there is no list of messages here; give its PATH")
    listed = cast("list[object]", found)
    cli.out.answer(
        "messages/1",
        {
            "checkpoint": target.checkpoint.id,
            "messages": list(message_documents(listed)),
        },
        cli.out.table(message_rows(listed)),
    )


def _at(state: object, path: str, reference: str) -> object:
    try:
        return find_at(state, parse_path(path))
    except KeyError:
        text = f"{reference} has nothing at {path}; holdfast show {reference} shows all"
        raise NotFound(text, reference=path) from None


def _lines(out: Output, checkpoint: Checkpoint, reference: str) -> Iterator[Line]:
    facts: list[tuple[str, Cell]] = [
        ("checkpoint", (checkpoint.id, "reference")),
        ("is", spaced([(reference, "name"), *marks(checkpoint)])),
        ("parent", (checkpoint.parent or "none: it is the first", "")),
        ("saved", (f"{time(checkpoint.saved_at)} as {checkpoint.kind}", "")),
        ("size", (size(checkpoint.size), "")),
        ("digest", (checkpoint.digest, "")),
        ("metadata", (pairs(checkpoint.metadata), "")),
        ("trace", (checkpoint.traceparent or "", "")),
    ]
    shown = [((name, "faint"), cell) for name, cell in facts if any(map(bool, cell[0]))]
    yield from out.table(shown)


def _waiting(out: Output, waiting: ThreadWaits) -> Iterator[Line]:
    if waiting:
        yield ()
        yield (("the thread waits", "title"),)
        yield from waiting_lines(out, waiting)


def _changes(out: Output, changes: Diff) -> Iterator[Line]:
    yield ()
    yield (("changed since its parent", "title"),)
    yield from map(out.fitted, change_lines(changes, "  "))


def _outline(out: Output, state: object) -> Iterator[Line]:
    yield ()
    yield (("state", "title"),)
    if type(state) is not dict:
        yield out.fitted(((f"  {excerpt(state)}", ""),))
        return
    values = cast("dict[object, object]", state)
    yield from out.table(
        ((f"  {name}", "name"), (_summary(value), "")) for name, value in values.items()
    )


def _summary(value: object) -> str:
    count = len(cast("list[object]", value)) if type(value) in COUNTED else 0
    return f"{type(value).__name__} of {count}" if count else excerpt(value)


def _value_lines(value: object) -> Iterator[Line]:
    if isinstance(value, str):
        text = value
    else:
        # Control characters are written as JSON escapes: the output stays JSON.
        text = escaped(orjson.dumps(plain(value), option=orjson.OPT_INDENT_2).decode())
    for line in text.split("\n"):
        yield ((line, ""),)
