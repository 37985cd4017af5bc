"""`holdfast fork`: a new thread that shares the past of another."""

from __future__ import annotations

from typing import cast

import click
import orjson

from holdfast.cli import _command
from holdfast.cli._completion import REFERENCE
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import option
from holdfast.cli._resolve import locate
from holdfast.views.documents import thread_document
from holdfast.views.references import shown_reference


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
def command(cli: Invocation, *, ref: str, name: str, values: dict[str, object]) -> None:
    """Create a thread NAME that starts at REF; nothing is copied."""
    with cli.writing() as store:
        target = locate(store, ref)
        state: object = store.load(target.checkpoint) if values else {}
        if not isinstance(state, dict):
            raise click.UsageError(
                f"the state of {ref} is not a mapping; leave --set out"
            )
        origin = shown_reference(store, target.checkpoint, target.thread)
        fork = target.thread.fork(name, target.checkpoint)
        if values:
            fork.save(cast("dict[str, object]", state) | values)
        about = fork.about
        assert about is not None
    cli.out.done(
        "fork/1",
        {"thread": thread_document(about)},
        (name, "name"),
        (f"@{about.head.step if about.head else 0}  forked from {origin}", ""),
    )
