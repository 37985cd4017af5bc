"""`holdfast show`: one checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import click
import orjson

from holdfast._api.store import Store
from holdfast._values.paths import find_at, parse_path
from holdfast.cli import _changes, _command, _documents
from holdfast.cli._messages import message_documents, message_rows
from holdfast.cli._names import REFERENCE, Place, locate, shown_reference
from holdfast.cli._session import Session
from holdfast.cli.terminal.escape import escaped
from holdfast.cli.terminal.output import Cell, Line, Output, plain
from holdfast.cli.terminal.tables import spaced
from holdfast.diff import Diff, diff, excerpt
from holdfast.errors import NotFound

MESSAGES = "messages"
COUNTED = frozenset({list, tuple, dict, set, frozenset})


@_command.command("show")
@click.argument("ref", type=REFERENCE)
@click.argument("path", required=False)
@click.option("--state", "whole", is_flag=True, help="Print the whole state.")
@click.option("--messages", is_flag=True, help="Print who said what, a line each.")
def command(
    session: Session, *, ref: str, path: str | None, whole: bool, messages: bool
) -> None:
    """Show the checkpoint REF: what it is, what it changed, and its state.

    With a PATH such as messages[3].content or /messages/3/content, only what stands
    there is printed; with --messages it is where they stand, `messages` without it.
    """
    with session.reading() as store:
        place = locate(store, ref)
        state = store.load(place.checkpoint)
        if messages:
            _show_messages(session, place, _at(state, path or MESSAGES, ref))
            return
        if path is not None or whole:
            value = _at(state, path or "", ref)
            about = {"checkpoint": place.checkpoint.id, "path": path or ""}
            document = {**about, "value": plain(value)}
            session.out.answer("value/1", document, _value_lines(value))
            return
        before = _changes.state_before(store, place.checkpoint, state)
        changes = diff(before, state)
        document = _document(store, place)
        document["changes"] = list(map(_changes.change_document, changes.changes))
        document["state"] = plain(state)
        lines = _lines(session.out, store, place, changes)
        session.out.answer("show/1", document, (*lines, *_outline(session.out, state)))


def _show_messages(session: Session, place: Place, found: object) -> None:
    if not isinstance(found, list | tuple):
        raise click.UsageError("there is no list of messages; name its PATH")
    listed = cast("list[object]", found)
    session.out.answer(
        "messages/1",
        {
            "checkpoint": place.checkpoint.id,
            "messages": list(message_documents(listed)),
        },
        session.out.table(message_rows(listed)),
    )


def _at(state: object, path: str, reference: str) -> object:
    try:
        return find_at(state, parse_path(path))
    except KeyError:
        text = f"{reference} has nothing at {path}; holdfast show {reference} shows all"
        raise NotFound(text, reference=path) from None


def _document(store: Store, place: Place) -> dict[str, Any]:
    return {
        "reference": shown_reference(store, place.checkpoint, place.thread),
        "checkpoint": _documents.checkpoint_document(place.checkpoint),
    }


def _lines(out: Output, store: Store, place: Place, changes: Diff) -> Iterator[Line]:
    checkpoint = place.checkpoint
    reference = shown_reference(store, checkpoint, place.thread)
    facts: list[tuple[str, Cell]] = [
        ("checkpoint", (checkpoint.id, "reference")),
        ("is", spaced([(reference, "name"), *_documents.marks(checkpoint)])),
        ("parent", (checkpoint.parent or "none: it is the first", "")),
        ("saved", (f"{_documents.time(checkpoint.saved_at)} as {checkpoint.kind}", "")),
        ("size", (_documents.size(checkpoint.size), "")),
        ("digest", (checkpoint.digest, "")),
        ("metadata", (_documents.pairs(checkpoint.metadata), "")),
    ]
    shown = [((name, "faint"), cell) for name, cell in facts if any(map(bool, cell[0]))]
    yield from out.table(shown)
    yield ()
    yield (("changed since its parent", "title"),)
    yield from map(out.fitted, _changes.change_lines(changes, "  "))


def _outline(out: Output, state: object) -> Iterator[Line]:
    yield ()
    yield (("state", "title"),)
    if not _is_mapping(state):
        yield out.fitted(((f"  {excerpt(state)}", ""),))
        return
    values = cast("dict[object, object]", state)
    yield from out.table(
        ((f"  {name}", "name"), (_summary(value), "")) for name, value in values.items()
    )


def _is_mapping(state: object) -> bool:
    return type(state) is dict


def _summary(value: object) -> str:
    count = len(cast("list[object]", value)) if type(value) in COUNTED else 0
    return f"{type(value).__name__} of {count}" if count else excerpt(value)


def _value_lines(value: object) -> Iterator[Line]:
    if isinstance(value, str):
        text = value
    else:
        # As JSON writes them, so that what is printed is still JSON.
        text = escaped(orjson.dumps(plain(value), option=orjson.OPT_INDENT_2).decode())
    for line in text.split("\n"):
        yield ((line, ""),)
