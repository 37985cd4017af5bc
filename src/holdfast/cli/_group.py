"""The group of all commands, by purpose; each is loaded when it is used."""

from __future__ import annotations

import inspect
import keyword
from importlib import import_module

import click

from holdfast import __version__
from holdfast._values import nearest
from holdfast.cli import _overview
from holdfast.cli._command import (
    HELP,
    Option,
    help_option,
    json_options,
    shared_options,
    write_options,
)

# Each command is `command` in the module of its name.
SECTIONS = {
    "Look": (
        "status", "log", "show", "diff", "compare", "threads", "effects", "journal",
        "reflog", "search", "blame", "bisect",
    ),
    "Change": (
        "fork", "merge", "rewind", "restore", "undo", "redo", "tag", "label", "resolve",
    ),
    "Keep": (
        "stats", "verify", "salvage", "seal", "key", "prune", "erase", "compact",
        "backup", "export", "import", "doctor", "selftest",
    ),
    "Connect": ("serve", "mcp", "completion"),
}  # fmt: skip
NAMES = tuple(name for names in SECTIONS.values() for name in names)
# Names that people know from a shell or from git.
ALIASES = {
    "ls": "threads",
    "cat": "show",
    "history": "log",
    "checkout": "rewind",
    "branch": "fork",
}


class Commands(click.Group):
    """The group of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        return list(NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        name = ALIASES.get(cmd_name, cmd_name)
        return load(name) if name in NAMES else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        is_known = name in NAMES or name in ALIASES or name.startswith("-")
        if not (is_known or ctx.resilient_parsing):
            near = nearest.nearest(name, (*NAMES, *ALIASES), most=1)
            meant = f"did you mean {near[0]}?" if near else "holdfast --help lists all"
            raise click.UsageError(f"there is no command {name}; {meant}", ctx)
        return super().resolve_command(ctx, args)

    def get_help_option(self, ctx: click.Context) -> click.Option:  # noqa: ARG002 - click's
        return help_option()

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        write_options(ctx, formatter, "Options", self.get_params(ctx))
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, summary(load(name))) for name in names])
        with formatter.section("Other names"):
            formatter.write_dl(list(ALIASES.items()))


def summary(command: click.Command) -> str:
    """The first sentence of a command's help, whole."""
    first = inspect.cleandoc(command.help or "").partition("\n\n")[0]
    return " ".join(first.split())


def load(name: str) -> click.Command:
    """A command by its name."""
    module = f"{name}_" if keyword.iskeyword(name) else name.replace("-", "_")
    found: click.Command = import_module(f"holdfast.cli.commands.{module}").command
    return found


@click.pass_context
def _without_command(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        _overview.overview(context.obj)


def _print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"holdfast {__version__}")
        ctx.exit()


VERSION = Option(
    ["--version"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
ABOUT = """Keeps the state of AI agents: every step saved, any step restorable.

Without a command, it lists the threads that were used last, with their heads and
forks.
"""
ROOT = Commands(
    "holdfast",
    params=[*json_options(stream=False), *shared_options(), VERSION],
    callback=_without_command,
    invoke_without_command=True,
    context_settings=HELP,
    help=ABOUT,
)
