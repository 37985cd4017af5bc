"""`holdfast fork`: a new thread that shares the past of another."""

from __future__ import annotations

from typing import cast

import click
import orjson

from holdfast.cli import _command, _documents
from holdfast.cli._names import REFERENCE, locate, shown_reference
from holdfast.cli._session import Session


def _assignments(
    ctx: click.Context, param: click.Parameter, given: tuple[str, ...]
) -> dict[str, object]:
    """Each ``KEY=JSON`` as a value; what is no JSON is text."""
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
@click.option(
    "--set",
    "values",
    multiple=True,
    callback=_assignments,
    metavar="KEY=JSON",
    help="Begin with a save that sets this value of the state; may be repeated.",
)
def command(
    session: Session, *, ref: str, name: str, values: dict[str, object]
) -> None:
    """Begin a thread NAME at REF; nothing is copied."""
    with session.writing() as store:
        place = locate(store, ref)
        state: object = store.load(place.checkpoint) if values else {}
        if not isinstance(state, dict):
            raise click.UsageError(f"the state of {ref} has no values to --set")
        origin = shown_reference(store, place.checkpoint, place.thread)
        fork = place.thread.fork(name, place.checkpoint)
        if values:
            fork.save(cast("dict[str, object]", state) | values)
        about = fork.about
        assert about is not None
    session.out.done(
        "fork/1",
        {"thread": _documents.thread_document(about)},
        (name, "name"),
        (f"@{about.head.step if about.head else 0}  forked from {origin}", ""),
    )
