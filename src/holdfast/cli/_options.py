"""Options that several commands share, and the times and ages they take."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from holdfast._values.clock import now
from holdfast._values.reference import Ago, parse_time

F = TypeVar("F", bound=Callable[..., Any])

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(r"([0-9]{1,9}) ?(s|m|h|d|w)(?:ec|in|ours?|ays?|eeks?)?", re.ASCII)


def flag(*names: str, help: str) -> Callable[[F], F]:
    """An option without a value."""
    return click.option(*names, is_flag=True, help=help)


def option(names: str, metavar: str, text: str, **rest: Any) -> Callable[[F], F]:
    """An option with a value; ``names`` are separated by spaces."""
    return click.option(*names.split(), metavar=metavar, help=text, **rest)


def count_option(
    names: str, text: str, *, metavar: str = "N", default: int | None = None
) -> Callable[[F], F]:
    """An option whose value is a number from 1 on."""
    return option(names, metavar, text, type=click.IntRange(min=1), default=default)


def limit_option(default: int) -> Callable[[F], F]:
    """``-n``: how many to list."""
    text = f"Maximum number, {default} by default."
    return count_option("-n --limit", text, metavar="COUNT", default=default)


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
    """A callback: a time that a person wrote, in microseconds."""
    parsed = parse_time(value) if value is not None else None
    if value is not None and parsed is None:
        example = "try '5 minutes ago', '2026-11-15' or '2026-11-15 10:00'"
        raise click.BadParameter(f"{value!r} is not a time; {example}", ctx, param)
    if isinstance(parsed, Ago):
        return now() - parsed.microseconds
    return parsed.at if parsed is not None else None


def since_option(text: str) -> Callable[[F], F]:
    """``--since``: from which time on."""
    return option("--since", "TIME", text, callback=as_time)


def as_age(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> timedelta | None:
    """A callback: an age such as ``30d``, ``12h``, ``90m`` or ``2w``."""
    if value is None:
        return None
    match = _AGE.fullmatch(value)
    if match is None:
        text = f"{value!r} is not an age; try 30d, 12h or 2w"
        raise click.BadParameter(text, ctx, param)
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
