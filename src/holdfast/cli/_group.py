"""The group of all commands, by purpose; each is loaded when it is used."""

from __future__ import annotations

import keyword
from importlib import import_module

import click

from holdfast.cli._command import HELP, json_options, shared_options, write_options

# Each command is `command` in the module of its name.
SECTIONS = {
    "Look": (
        "log", "show", "diff", "threads", "effects", "journal", "reflog", "search",
        "blame", "bisect",
    ),
    "Change": (
        "fork", "rewind", "restore", "undo", "redo", "tag", "label", "resolve",
    ),
    "Keep": (
        "stats", "verify", "salvage", "seal", "key", "prune", "erase", "compact",
        "backup", "export", "import", "doctor", "selftest", "bench",
    ),
    "Connect": ("serve", "mcp", "completion"),
}  # fmt: skip
NAMES = tuple(name for names in SECTIONS.values() for name in names)


class Commands(click.Group):
    """The group of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        return list(NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        return load(cmd_name) if cmd_name in NAMES else None

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        write_options(ctx, formatter, "Options", self.get_params(ctx))
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(n, load(n).get_short_help_str(70)) for n in names])


def load(name: str) -> click.Command:
    """A command by its name."""
    module = f"{name}_" if keyword.iskeyword(name) else name.replace("-", "_")
    found: click.Command = import_module(f"holdfast.cli.commands.{module}").command
    return found


@click.pass_context
def _overview(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        from holdfast.cli._overview import overview  # noqa: PLC0415 - not needed by a command

        overview(context.obj)


def _print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from holdfast import __version__  # noqa: PLC0415 - rarely needed

        click.echo(f"holdfast {__version__}")
        ctx.exit()


VERSION = click.Option(
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
    callback=_overview,
    invoke_without_command=True,
    context_settings=HELP,
    help=ABOUT,
)
