"""From a command line to an exit status; every error is printed here."""

from __future__ import annotations

import io
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence

import click
import orjson

from holdfast._values.clock import now
from holdfast._values.os_errors import NO_ROOM, no_room
from holdfast.cli import _shell_completion, _status
from holdfast.cli._group import ROOT
from holdfast.cli._invocation import COMPLETION, PROGRAM, Invocation
from holdfast.cli._text import for_command_line, hint_of
from holdfast.cli.terminal.escape import escaped, harmless
from holdfast.errors import HoldfastError


def run(arguments: Sequence[str], clock: Callable[[], int] = now) -> int:
    """Run a command line, and print its error if it has one."""
    cli = Invocation(arguments, clock)
    if COMPLETION in os.environ:
        return _shell_completion.complete(ROOT, cli, os.environ[COMPLETION])
    for stream in (sys.stdout, sys.stderr):
        # A character that the encoding cannot write must not stop a command half-way.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            status = _invoke(cli)
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        return _status.INTERRUPTED
    except BrokenPipeError:
        # The rest of the buffer must not fail again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _status.PIPE
    except Exception as error:  # noqa: BLE001 - printed below, each with its status
        return _print_error(cli, error)
    return status


def _invoke(cli: Invocation) -> int:
    arguments = list(cli.arguments)
    try:
        with ROOT.make_context(PROGRAM, arguments, obj=cli) as context:
            status = ROOT.invoke(context)
    except click.exceptions.Exit as left:
        return left.exit_code
    return status if isinstance(status, int) else _status.OK


def _print_error(cli: Invocation, error: Exception) -> int:
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        error = no_room(error)
    if isinstance(error, HoldfastError):
        status, code, message = (
            _status.status_of(error),
            error.code,
            for_command_line(str(error)),
        )
    elif isinstance(error, click.ClickException):
        status, code, message = _status.USAGE, "usage", error.format_message()
    else:
        message = f"internal error: {type(error).__name__}: {error}"
        status, code = _status.INTERNAL, "internal"
    if cli.options.verbose and status == _status.INTERNAL:
        traceback.print_exception(error)
    # The arguments may contain bytes that are not text in any encoding.
    message = message.encode(errors="backslashreplace").decode()
    if _wants_json(cli.arguments):
        document = {"code": code, "message": message, "hint": hint_of(message)}
        sys.stderr.write(f"{escaped(orjson.dumps({'error': document}).decode())}\n")
    else:
        sys.stderr.write(f"{PROGRAM}: {harmless(message)}\n{_hint(error)}")
    return status


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    sys.stderr.write(f"{PROGRAM}: {harmless(str(message))}\n")


def _wants_json(arguments: Sequence[str]) -> bool:
    """True if JSON was asked for; also works for arguments that click refuses."""
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in ours or "--ndjson" in ours


def _hint(error: Exception) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"see: {context.command_path} --help\n" if context else ""
