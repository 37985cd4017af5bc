"""`holdfast show`: one checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import cast

import click
import orjson

from holdfast._api.store import Store
from holdfast._engine.context import Context
from holdfast._messages.transcript import role_of, text_of
from holdfast._values.paths import find_at, parse_path
from holdfast._values.records import Checkpoint
from holdfast.cli import _command
from holdfast.cli._completion import REFERENCE
from holdfast.cli._files import COLON, file_named, show_file
from holdfast.cli._invocation import Invocation
from holdfast.cli._lines import change_lines, marks, message_rows
from holdfast.cli._log_text import PLAIN_KIND
from holdfast.cli._options import bookkeeping_flag, flag
from holdfast.cli._resolve import locate
from holdfast.cli._text import pairs, size, time
from holdfast.cli._thread_names import find_thread
from holdfast.cli._waiting import waiting_lines
from holdfast.cli.terminal.escape import escaped
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Cell, Line, spaced
from holdfast.diff import WIDTH, Diff, excerpt
from holdfast.errors import NotFound
from holdfast.views.differences import change_documents, difference, state_before
from holdfast.views.documents import checkpoint_document, plain
from holdfast.views.langgraph_steps import own_metadata, own_values
from holdfast.views.messages import message_documents, one_line_text
from holdfast.views.references import Revision, shown_reference
from holdfast.views.rows import nodes_by_checkpoint
from holdfast.views.state_values import StateReader
from holdfast.views.waiting import ThreadWaits, waiting_at, waiting_documents

MESSAGES = "messages"
COUNTED = frozenset({list, tuple, dict, set, frozenset})
_NAMED = re.compile(r"(?P<thread>.+)\[(?P<position>[0-9]{1,9})\]", re.DOTALL)


@_command.command("show")
@click.argument("ref", type=REFERENCE)
@click.argument("path", required=False)
@flag("--state", "whole", help="Print the whole state.")
@flag("--messages", help="Print the messages, one line each.")
@bookkeeping_flag
def command(
    cli: Invocation,
    *,
    ref: str,
    path: str | None,
    whole: bool,
    messages: bool,
    bookkeeping: bool,
) -> None:
    """Show a checkpoint: what it changed, and its state.

    REF is a checkpoint, a thread, or a message as `search` prints it: trip-7[3]. With
    REF:path, the content of a file that was saved with the checkpoint is printed.

    If it is the head of a thread, shows also what the thread waits for: tool calls that
    began and did not end, messages that no checkpoint has yet, a paused run.

    Bookkeeping of LangGraph and of conversations is hidden, unless --verbose is given.

    With a PATH such as messages[3].content or /messages/3/content, only the value at
    that path is printed. With --messages, PATH is the list of messages, which is
    `messages` by default.
    """
    bookkeeping = bookkeeping or cli.options.verbose
    with cli.reading() as store:
        if path is None and _names_message(store, ref):
            _show_message(cli, store, ref)
            return
        named = file_named(store, ref) if path is None and COLON in ref else None
        if named is not None:
            show_file(cli, *named)
            return
        target = locate(store, ref)
        state = store.load(target.checkpoint)
        if messages:
            _show_messages(cli, target, _at(state, path or MESSAGES, ref))
        elif path is not None or whole:
            _show_value(cli, target, path or "", _at(state, path or "", ref))
        else:
            _show_checkpoint(cli, store, target, state, bookkeeping=bookkeeping)


def _show_checkpoint(
    cli: Invocation, store: Store, target: Revision, state: object, *, bookkeeping: bool
) -> None:
    before = state_before(store, target.checkpoint, state)
    changes = difference(before, state, bookkeeping=bookkeeping)
    reference = shown_reference(store, target.checkpoint, target.thread)
    waiting = waiting_at(store, target)
    made = store.runner.run(nodes_by_checkpoint, [target.checkpoint])
    nodes = made.get(target.checkpoint.id, [])
    metadata = target.checkpoint.metadata
    if not bookkeeping:
        metadata = own_metadata(target.checkpoint)
    document = {
        "reference": reference,
        "checkpoint": checkpoint_document(target.checkpoint),
        "waiting": waiting_documents(waiting),
        "changes": change_documents(changes),
        "state": plain(state),
    }
    lines = chain(
        _lines(cli.out, target.checkpoint, reference, nodes, metadata),
        _waiting(cli.out, waiting),
        _changes(cli.out, changes),
        _outline(cli.out, state, bookkeeping=bookkeeping),
    )
    cli.out.answer("show/1", document, lines)


def _show_value(cli: Invocation, target: Revision, path: str, value: object) -> None:
    about = {"checkpoint": target.checkpoint.id, "path": path, "value": plain(value)}
    cli.out.answer("value/1", about, _value_lines(value))


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
        hint = f"holdfast show {reference} shows all"
        if path.startswith("@"):
            hint = _command.as_one_word(reference, path)
        text = f"{reference} has nothing at {path}; {hint}"
        raise NotFound(text, reference=path) from None


def _lines(
    out: Output,
    checkpoint: Checkpoint,
    reference: str,
    nodes: Sequence[str],
    metadata: Mapping[str, object],
) -> Iterator[Line]:
    facts: list[tuple[str, Cell]] = [
        ("checkpoint", (checkpoint.id, "reference")),
        ("is", spaced([(reference, "name"), *marks(checkpoint)])),
        ("parent", (checkpoint.parent or "none: it is the first", "")),
        ("saved", (_saved(out, checkpoint), "")),
        ("size", (size(checkpoint.size), "")),
        ("digest", (checkpoint.digest, "")),
        ("node", (", ".join(nodes), "name")),
        ("metadata", (pairs(metadata), "")),
        ("trace", (checkpoint.traceparent or "", "")),
    ]
    shown = [((name, "faint"), cell) for name, cell in facts if any(map(bool, cell[0]))]
    yield from out.table(shown)


def _saved(out: Output, checkpoint: Checkpoint) -> str:
    at, shown = time(checkpoint.saved_at), out.time(checkpoint.saved_at)
    kind = "" if checkpoint.kind == PLAIN_KIND else f" as {checkpoint.kind}"
    return f"{at}{kind}" if shown in at else f"{at}, {shown}{kind}"


def _waiting(out: Output, waiting: ThreadWaits) -> Iterator[Line]:
    if waiting:
        yield ()
        yield (("the thread waits", "title"),)
        yield from waiting_lines(out, waiting)


def _changes(out: Output, changes: Diff) -> Iterator[Line]:
    yield ()
    yield (("changed since its parent", "title"),)
    yield from map(out.fitted, change_lines(changes, "  ", out.columns or WIDTH))


def _outline(out: Output, state: object, *, bookkeeping: bool) -> Iterator[Line]:
    yield ()
    yield (("state", "title"),)
    if type(state) is not dict:
        yield out.fitted(((f"  {excerpt(state)}", ""),))
        return
    values = cast("Mapping[object, object]", state)
    yield from out.table(
        ((f"  {name}", "name"), (_summary(value), ""))
        for name, value in (values if bookkeeping else own_values(values)).items()
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


def _names_message(store: Store, text: str) -> bool:
    """True if a text is the name of a message, and not that of a thread."""
    return bool(_NAMED.fullmatch(text)) and find_thread(store, text) is None


def _show_message(cli: Invocation, store: Store, text: str) -> None:
    """Print the message that a text names."""
    found = _NAMED.fullmatch(text)
    assert found is not None  # `_names_message` has looked
    target, position = locate(store, found["thread"]), int(found["position"])
    message = store.runner.run(_message_at, target.checkpoint, position, text)
    [document] = message_documents([message], position)
    about = {"reference": text, "checkpoint": target.checkpoint.id, **document}
    cli.out.answer(
        "message/1", {**about, "message": plain(message)}, _message_lines(text, message)
    )


async def _message_at(
    context: Context, checkpoint: Checkpoint, position: int, text: str
) -> object:
    messages = (await StateReader(context, checkpoint).transcript()).messages
    if position < len(messages):
        return messages[position]
    why = f"there is no {text}: the last message is [{len(messages) - 1}]"
    if not messages:
        why = f"there is no {text}: {checkpoint.thread} has no messages"
    hint = f"holdfast show {checkpoint.thread} --messages lists them"
    raise NotFound(f"{why}; {hint}", reference=text)


def _message_lines(name: str, message: object) -> Iterator[Line]:
    yield ((name, "reference"), ("  ", ""), (role_of(message), "name"))
    for line in (text_of(message) or one_line_text(message)).split("\n"):
        yield ((line, ""),)
