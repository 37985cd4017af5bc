"""`holdfast fork`: a new thread that shares the past of another."""

from __future__ import annotations

from typing import get_args

import click
import orjson

from holdfast._api.store import Store
from holdfast.cli import _command
from holdfast.cli._completion import REFERENCE
from holdfast.cli._effects import behind_lines
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import dry_run_option, option
from holdfast.cli._resolve import locate
from holdfast.cli.terminal.tables import Line
from holdfast.effects import Policy
from holdfast.errors import Unstorable
from holdfast.views.documents import thread_document
from holdfast.views.edits import edited
from holdfast.views.effects import effect_document, left_behind_by_fork
from holdfast.views.references import Revision, shown_reference


def _assignments(
    ctx: click.Context, param: click.Parameter, given: tuple[str, ...]
) -> dict[str, object]:
    """The value of each ``PATH=JSON``; a value that is not JSON is text."""
    found: dict[str, object] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise click.BadParameter(f"{text!r} is not PATH=JSON", ctx, param)
        try:
            found[key] = orjson.loads(value)
        except orjson.JSONDecodeError:
            found[key] = value
    return found


@_command.command("fork")
@click.argument("ref", type=REFERENCE)
@click.argument("name")
@option(
    "--set values",
    "PATH=JSON",
    "Save this value at a path of the state as the first step; may be repeated.",
    multiple=True,
    callback=_assignments,
)
@click.option(
    "--effects",
    type=click.Choice(get_args(Policy)),
    help="What a tool call does that repeats an effect the fork leaves behind: use its"
    " result, be refused, or happen again; deny refuses every call that has effects.",
)
@dry_run_option
def command(
    cli: Invocation,
    *,
    ref: str,
    name: str,
    values: dict[str, object],
    effects: Policy | None,
    dry_run: bool,
) -> None:
    """Create a thread that starts at a checkpoint; nothing is copied.

    The thread NAME starts at REF. Effects that happened after REF stay behind: they are
    not in the state of the fork.
    """
    opened = cli.reading if dry_run else cli.writing
    with opened() as store:
        target = locate(store, ref)
        state = _state(store, target, values, ref) if values else None
        origin = shown_reference(store, target.checkpoint, target.thread)
        behind = left_behind_by_fork(target.thread, target.checkpoint)
        since = f"{target.thread.id} --since {target.checkpoint.id}"
        more = behind_lines(cli.out, behind, f"holdfast effects {since}")
        left = {"left_behind": [effect_document(effect) for effect in behind]}
        if dry_run:
            said: Line = (("would fork ", ""), (name, "name"), (f" from {origin}", ""))
            document = {"dry_run": True, "name": name, "from": origin, **left}
            cli.out.answer("fork/1", document, (said, *more))
            return
        fork = target.thread.fork(name, target.checkpoint, effects=effects)
        if values:
            fork.save(state)
        about = fork.about
        assert about is not None
    cli.out.done(
        "fork/1",
        {"thread": thread_document(about), **left},
        (name, "name"),
        (f"@{about.head.step if about.head else 0}  forked from {origin}", ""),
        more=more,
    )


def _state(
    store: Store, target: Revision, values: dict[str, object], ref: str
) -> object:
    try:
        return edited(store.load(target.checkpoint), values)
    except Unstorable as error:
        raise click.UsageError(f"{ref}: {error.reason}") from None
