"""`holdfast fork`: a new thread that shares the past of another."""

from __future__ import annotations

from typing import cast, get_args

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
from holdfast.views.documents import thread_document
from holdfast.views.effects import effect_document, left_behind_by_fork
from holdfast.views.references import Revision, shown_reference


def _assignments(
    ctx: click.Context, param: click.Parameter, given: tuple[str, ...]
) -> dict[str, object]:
    """The value of each ``KEY=JSON``; a value that is not JSON is text."""
    found: dict[str, object] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise click.BadParameter(f"{text!r} is not KEY=JSON", ctx, param)
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
    "KEY=JSON",
    "Save this value of the state as the first step of the fork; may be repeated.",
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
    """Create a thread NAME that starts at REF; nothing is copied.

    Effects that happened after REF stay behind: they are not in the state of the fork.
    """
    opened = cli.reading if dry_run else cli.writing
    with opened() as store:
        target = locate(store, ref)
        state = _state(store, target, ref) if values else {}
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
            fork.save(state | values)
        about = fork.about
        assert about is not None
    cli.out.done(
        "fork/1",
        {"thread": thread_document(about), **left},
        (name, "name"),
        (f"@{about.head.step if about.head else 0}  forked from {origin}", ""),
        more=more,
    )


def _state(store: Store, target: Revision, ref: str) -> dict[str, object]:
    state = store.load(target.checkpoint)
    if not isinstance(state, dict):
        raise click.UsageError(f"the state of {ref} is not a mapping; leave --set out")
    return cast("dict[str, object]", state)
