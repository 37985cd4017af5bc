"""`holdfast resolve`: how a call ended that began and did not end."""

from __future__ import annotations

import click
import orjson

from holdfast._engine.effects.settle import CallEnd, settle
from holdfast.cli import _command
from holdfast.cli._completion import THREAD
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import option


@_command.command("resolve")
@click.argument("thread", type=THREAD)
@click.argument("call")
@option("--result", "JSON", "It happened, and this is its result.")
@option("--error", "TEXT", "It failed with this error.")
def command(
    cli: Invocation, *, thread: str, call: str, result: str | None, error: str | None
) -> None:
    """Record how a tool call ended.

    CALL is a call of THREAD. `effects` lists calls that began and did not end as
    unknown: the program was stopped in between. Look into the system that the tool acts
    on, then record what is true.
    """
    if (result is None) == (error is None):
        raise click.UsageError("give either --result or --error")
    end = CallEnd(_parsed(result) if result is not None else None, error)
    with cli.writing() as store:
        effect = store.runner.save(settle, thread, call, end)
    document = {"thread": effect.thread, "call": call, **end.entry()}
    shown = "completed" if error is None else "failed"
    cli.out.done("resolve/1", document, (effect.tool, "name"), (f"  {shown}", ""))


def _parsed(text: str) -> object:
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value
