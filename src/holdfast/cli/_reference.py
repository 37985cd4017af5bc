"""The reference of the command line as Markdown, generated from the commands.

`python -m holdfast.cli._reference` prints it; with docs/cli.md it replaces the
generated part of that page.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence

import click

from holdfast.cli._command import Command, json_options, shared_options
from holdfast.cli._group import ALIASES, ROOT, SECTIONS, load
from holdfast.cli._status import MEANINGS

MARK = "<!-- from here on made by: python -m holdfast.cli._reference docs/cli.md -->\n"
ANY = "[OPTIONS]"
VARIABLES = {
    "HOLDFAST_STORE": "the store, unless `--store` names one",
    "HOLDFAST_SCOPE": "the scope, unless `--scope` names one",
    "HOLDFAST_TOKEN": "the token that clients of `mcp --http` must send",
    "HOLDFAST_PAGER, PAGER": "the pager; `less -FRX` by default, none if empty",
    "NO_COLOR": "if not empty: no colours",
    "FORCE_COLOR, CLICOLOR_FORCE": "if not empty: colours also without a terminal",
    "TERM": "`dumb`: no colours",
    "COLUMNS, LINES": "the size of the screen, if the terminal does not report it",
}


def reference() -> str:
    """Every command, option, exit status and variable."""
    parts = ["## Commands", *(part for s in SECTIONS for part in _section(s))]
    aliases = ((f"`{alias}`", f"`{name}`") for alias, name in ALIASES.items())
    parts += ["## Other names", _table(("typed", "is"), aliases)]
    parts += ["## Options of every command", _options(shared_options())]
    parts += ["## Exit statuses", _table(("status", "means"), MEANINGS.items())]
    variables = ((f"`{n.replace(', ', '`, `')}`", t) for n, t in VARIABLES.items())
    parts += ["## Environment", _table(("variable", "means"), variables)]
    return "\n\n".join(parts) + "\n"


def rewritten(page: str) -> str:
    """A page with its reference replaced."""
    written, mark, _ = page.partition(MARK)
    assert mark, f"the page has no line {MARK}"
    return f"{written}{MARK}\n{reference()}"


def _section(title: str) -> Iterator[str]:
    yield f"### {title}"
    for name in SECTIONS[title]:
        yield from _command(load(name))


def _command(command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=f"holdfast {command.name}")
    pieces = [piece for piece in command.collect_usage_pieces(context) if piece != ANY]
    yield f"#### `{' '.join([context.info_name or '', *pieces])}`"
    yield inspect.cleandoc(command.help or "")
    own = command.own_params if isinstance(command, Command) else command.params
    options = [param for param in own if isinstance(param, click.Option)]
    if isinstance(command, Command):
        yield _options([*options, *json_options(stream=command.stream)])


def _options(params: Sequence[click.Parameter]) -> str:
    context = click.Context(ROOT)
    found = [p for p in params if isinstance(p, click.Option) and not p.hidden]
    names = [
        (record[0] if (record := p.get_help_record(context)) else "") for p in found
    ]
    return "\n".join(
        f"- `{name}`: {option.help}" for name, option in zip(names, found, strict=True)
    )


def _table(head: tuple[str, str], rows: Iterable[tuple[object, str]]) -> str:
    lines = [f"| {left} | {right} |" for left, right in [head, ("---", "---"), *rows]]
    return "\n".join(lines)


def main(paths: Sequence[str]) -> None:
    """Print the reference, or write it into pages."""
    for path in paths:
        with open(path, encoding="utf-8") as file:
            page = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(rewritten(page))
    if not paths:
        sys.stdout.write(reference())


if __name__ == "__main__":
    main(sys.argv[1:])
