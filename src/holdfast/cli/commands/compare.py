"""`holdfast compare`: several branches side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from holdfast.cli import _command
from holdfast.cli._completion import REFERENCE
from holdfast.cli._invocation import Invocation
from holdfast.cli._resolve import locate
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Cell, Line
from holdfast.views.branches import branches_document

HEADINGS = ("branch", "status", "score", "steps", "tokens", "differs")
RIGHT = (2, 3, 4)
NOTHING = "-"


@_command.command("compare")
@click.argument("refs", type=REFERENCE, nargs=-1, required=True)
def command(cli: Invocation, *, refs: tuple[str, ...]) -> None:
    """Compare the heads of forks, or any checkpoints.

    REFS are at least two of them. Each is compared with the newest checkpoint that all
    of them share: how many steps it is ahead, the tokens it has used, and which values
    differ. Branches of an exploration have their status and score, the highest first.
    """
    with cli.reading() as store:
        found = [locate(store, ref) for ref in refs]
        named = [(one.thread.id, one.checkpoint) for one in found]
        document = store.runner.run(branches_document, named)
    cli.out.answer("compare/1", document, _lines(cli.out, document))


def _lines(out: Output, document: dict[str, Any]) -> Iterator[Line]:
    base = document["base"]
    if base is None:
        yield (("they share no checkpoint; compared with the first", "faint"),)
    else:
        shared = f"{base['thread']}@{base['step']}"
        yield ((f"compared with {shared}, which all share", "faint"),)
    heading: list[Cell] = [(text, "title") for text in HEADINGS]
    yield from out.table([heading, *map(_row, document["branches"])], RIGHT)


def _row(branch: dict[str, Any]) -> list[Cell]:
    score, tokens = branch["score"], branch["tokens"]
    return [
        (f"{branch['title']}@{branch['step']}", "name"),
        (branch["status"] or NOTHING, ""),
        (NOTHING if score is None else f"{score:g}", ""),
        (str(branch["steps"]), ""),
        (NOTHING if tokens is None else f"{tokens:,}", ""),
        (branch["differs"] or "nothing", "faint"),
    ]
