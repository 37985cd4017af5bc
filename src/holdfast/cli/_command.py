"""The base of all commands: options may be given before or after their name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.shell_completion import CompletionItem

from holdfast.cli._invocation import Invocation

if TYPE_CHECKING:  # generic for type checkers, but not in every release of click
    TextParameter: TypeAlias = click.ParamType[str]
else:
    TextParameter = click.ParamType

HELP_NAMES = ["-h", "--help"]
HELP = {"help_option_names": HELP_NAMES, "max_content_width": 88}


class Option(click.Option):
    """An option whose help is one line: click loads `inspect` to indent several."""

    def __init__(self, *args: Any, help: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.help = help


class Command(click.Command):
    """A command with the shared options, which its help lists apart."""

    def __init__(self, *args: Any, stream: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.context_settings = {**HELP, **self.context_settings}
        self.stream = stream
        self.own_params = tuple(self.params)
        self.params += [*json_options(stream=stream), *self._shared()]

    def _shared(self) -> list[click.Option]:
        """The shared options, but not those that the command has its own way of."""
        own = {name for param in self.own_params for name in param.opts}
        return [param for param in shared_options() if not own & {*param.opts}]

    def get_help_option(self, ctx: click.Context) -> click.Option:  # noqa: ARG002 - click's
        return help_option()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, list(args))
        except click.UsageError as error:
            hint = _joined_reference(args)
            # A subclass says what is wrong with an option or an argument.
            if type(error) is not click.UsageError or not hint:
                raise
            raise click.UsageError(f"{error.message}; {hint}", ctx) from None

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        shared = {param.name for param in self._shared()}
        own = [param for param in self.get_params(ctx) if param.name not in shared]
        write_options(ctx, formatter, "Options", own)
        write_options(ctx, formatter, "Everywhere", self._shared())


def _joined_reference(args: Sequence[str]) -> str:
    """The one word for a thread and its checkpoint given as two."""
    for name, reference in pairwise(args):
        if reference.startswith("@") and not name.startswith("-"):
            return as_one_word(name, reference)
    return ""


def as_one_word(name: str, reference: str) -> str:
    """The hint for a thread and its checkpoint that are given as two words."""
    return f"a checkpoint is one word: {name}{reference}"


def write_options(
    ctx: click.Context,
    formatter: click.HelpFormatter,
    title: str,
    params: Sequence[click.Parameter],
) -> None:
    """One section of a help page; newer versions of click list arguments, too."""
    options = [param for param in params if isinstance(param, click.Option)]
    records = [record for option in options if (record := option.get_help_record(ctx))]
    if records:
        with formatter.section(title):
            formatter.write_dl(records)


def command(
    name: str, *, stream: bool = False, **options: Any
) -> Callable[[Callable[..., int | None]], Command]:
    """A command with ``--json`` and the shared options; its docstring is its help.

    ``stream`` adds ``--ndjson``. The function gets the `Invocation` first; a
    number that it returns is the exit status.
    """

    def decorated(function: Callable[..., int | None]) -> Command:
        made = click.command(name, cls=Command, stream=stream, **options)
        return made(click.pass_obj(function))

    return decorated


class Folder(TextParameter):
    """A folder that exists, checked as click does."""

    # click looks for a translation of this word, which takes longer than all options.
    name = "directory"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        return str(_click_folder().convert(value, param, ctx))

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return _click_folder().shell_complete(ctx, param, incomplete)


def _click_folder() -> click.Path:
    return click.Path(exists=True, file_okay=False)


# The group and a command have the same objects: a start makes each once.


@cache
def help_option() -> click.Option:
    """``--help``, as click makes it; but click looks for a translation of its text."""
    return Option(
        HELP_NAMES,
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_help,
        help="Show this message and exit.",
    )


def _print_help(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


@cache
def json_options(*, stream: bool) -> tuple[click.Option, ...]:
    """The options that print the result for programs."""
    if stream:
        lines = _option("--ndjson", "Print one JSON document per line.")
        return *json_options(stream=False), lines
    return (_option("--json", "Print one JSON document."),)


@cache
def shared_options() -> tuple[click.Option, ...]:
    """The options of every command."""
    address = "The store: a path, dir:PATH or postgresql://..."
    return (
        _option("--store", address, metavar="ADDRESS", is_flag=False),
        _option(
            "--scope", "Only this scope of the store.", metavar="NAME", is_flag=False
        ),
        _option(
            "-C",
            "Run as if started in this folder.",
            "directory",
            metavar="DIR",
            type=Folder(),
            is_flag=False,
        ),
        _option("-R", "Refuse to change the store.", "--read-only"),
        _option(
            "--wait",
            "How long to wait for another writer, 5 by default.",
            metavar="SECONDS",
            type=click.FloatRange(min=0),
            is_flag=False,
        ),
        _option(
            "--color",
            "When to use colours.",
            type=click.Choice(["auto", "always", "never"]),
            is_flag=False,
        ),
        _option("--ascii", "Use only ASCII characters."),
        _option("--no-pager", "Never start a pager."),
        _option("-q", "Print nothing but the result.", "--quiet"),
        _option(
            "-v", "Print more; show the traceback of an internal error.", "--verbose"
        ),
    )


def _option(
    first: str, text: str, *names: str, is_flag: bool = True, **options: Any
) -> click.Option:
    return Option(
        [first, *names],
        help=text,
        is_flag=is_flag,
        expose_value=False,
        callback=_remember,
        **options,
    )


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    # An option may be given before or after the command: the place where it is not
    # given must not overwrite the value from the other one.
    if value is None or value is False:
        return
    options = ctx.ensure_object(Invocation).options
    if param.name == "no_pager":
        options.pager = False
    else:
        setattr(options, str(param.name), value)
