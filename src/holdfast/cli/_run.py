"""From a command line to an exit status; every error is told in one place."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import click
import orjson

from holdfast.cli import _exits
from holdfast.cli._commands import ROOT
from holdfast.cli._session import Session
from holdfast.cli._wording import hint_of, worded
from holdfast.cli.terminal.escape import escaped, harmless
from holdfast.errors import HoldfastError

PROGRAM, VARIABLE = "holdfast", "_HOLDFAST_COMPLETE"


def run(arguments: Sequence[str]) -> int:
    """Run a command line and say what went wrong."""
    session = Session(arguments)
    if VARIABLE in os.environ:
        from holdfast.cli._shells import complete  # noqa: PLC0415 - rarely needed

        return complete(ROOT, session, os.environ[VARIABLE])
    for stream in (sys.stdout, sys.stderr):
        # What an encoding cannot write must not end a command half-way.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _invoke(session)
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        return _exits.INTERRUPTED
    except BrokenPipeError:
        # What is left in the buffer must not fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _exits.PIPE
    except Exception as error:  # noqa: BLE001 - told below, each with its status
        return _tell(session, error)
    return status


def _invoke(session: Session) -> int:
    arguments = list(session.arguments)
    try:
        with ROOT.make_context(PROGRAM, arguments, obj=session) as context:
            status = ROOT.invoke(context)
    except click.exceptions.Exit as left:
        return left.exit_code
    return status if isinstance(status, int) else _exits.OK


def _tell(session: Session, error: Exception) -> int:
    if isinstance(error, HoldfastError):
        status, code, message = _exits.status_of(error), error.code, worded(str(error))
    elif isinstance(error, click.ClickException):
        status, code, message = _exits.USAGE, "usage", error.format_message()
    else:
        message = f"internal error: {type(error).__name__}: {error}"
        status, code = _exits.INTERNAL, "internal"
    if session.settings.verbose and status == _exits.INTERNAL:
        import traceback  # noqa: PLC0415 - a tenth of the time that starting takes

        traceback.print_exception(error)
    # What was typed may be no text in any encoding.
    message = message.encode(errors="backslashreplace").decode()
    if _for_a_program(session.arguments):
        told = {"code": code, "message": message, "hint": hint_of(message)}
        sys.stderr.write(f"{escaped(orjson.dumps({'error': told}).decode())}\n")
    else:
        sys.stderr.write(f"{PROGRAM}: {harmless(message)}\n{_hint(error)}")
    return status


def _for_a_program(arguments: Sequence[str]) -> bool:
    """Whether JSON was asked for, even on a command line that cannot be understood."""
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in ours or "--ndjson" in ours


def _hint(error: Exception) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"see: {context.command_path} --help\n" if context else ""
