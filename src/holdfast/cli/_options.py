"""Options that several commands share, and the times and ages they take."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from holdfast._values.moment import EXAMPLES, Moment, parse_moment
from holdfast.cli._command import Option
from holdfast.cli._invocation import Invocation

REDACTED = "[redacted]"
F = TypeVar("F", bound=Callable[..., Any])


def flag(*names: str, help: str) -> Callable[[F], F]:
    """An option without a value."""
    return click.option(*names, cls=Option, is_flag=True, help=help)


def bookkeeping_flag(command: F) -> F:
    """The former name of ``--verbose``, where that shows bookkeeping."""
    text = "The same as --verbose."
    made = click.option(
        "--bookkeeping", cls=Option, is_flag=True, hidden=True, help=text
    )
    return made(command)


def option(names: str, metavar: str, text: str, **rest: Any) -> Callable[[F], F]:
    """An option with a value; ``names`` are separated by spaces."""
    return click.option(*names.split(), cls=Option, metavar=metavar, help=text, **rest)


def count_option(
    names: str, text: str, *, metavar: str = "N", default: int | None = None
) -> Callable[[F], F]:
    """An option whose value is a number from 1 on."""
    return option(names, metavar, text, type=click.IntRange(min=1), default=default)


def limit_option(default: int) -> Callable[[F], F]:
    """``-n``: how many to list."""
    text = f"Maximum number, {default} by default."
    return count_option("-n --limit", text, metavar="COUNT", default=default)


def open_limit_option(default: int) -> Callable[[F], F]:
    """``-n``: how many to list, ``None`` if the user does not say."""
    text = f"Maximum number; {default} by default, in a pager all."
    return count_option("-n --limit", text, metavar="COUNT")


def times_option(function: F) -> F:
    """``-n``: how many times to do it."""
    text = "Number of times, 1 by default."
    return count_option("-n --times", text, metavar="COUNT", default=1)(function)


def yes_option(function: F) -> F:
    """``--yes``: do it without asking."""
    return flag("-y", "--yes", help="Do not ask.")(function)


def dry_run_option(function: F) -> F:
    """``--dry-run``: show what would happen."""
    text = "Change nothing, only show what would change."
    return flag("-n", "--dry-run", help=text)(function)


def as_time(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> int | None:
    """A callback: a time or an age that a person wrote, in microseconds."""
    if value is None:
        return None
    return _moment(ctx, param, value).when(ctx.ensure_object(Invocation).clock())


def since_option(text: str) -> Callable[[F], F]:
    """``--since``: from which time on."""
    return option("--since", "TIME", text, callback=as_time)


def as_age(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> timedelta | None:
    """A callback: an age such as ``30d``, or how long ago a time is."""
    if value is None:
        return None
    at = ctx.ensure_object(Invocation).clock()
    return timedelta(microseconds=at - _moment(ctx, param, value).when(at))


def _moment(ctx: click.Context, param: click.Parameter, value: str) -> Moment:
    found = parse_moment(value)
    if found is None:
        text = f"{value!r} is not a time or an age; try {EXAMPLES}"
        raise click.BadParameter(text, ctx, param)
    return found


def redactor(patterns: tuple[str, ...]) -> Callable[[str], str] | None:
    """A function that hides what matches one of some patterns."""
    if not patterns:
        return None
    try:
        for pattern in patterns:
            re.compile(pattern)
    except re.error as error:
        raise click.UsageError(f"--redact: {error}") from error
    found = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
    return lambda text: found.sub(REDACTED, text)
