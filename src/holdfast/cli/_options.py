"""Options that several commands share, so that they are the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from holdfast._values.clock import now
from holdfast._values.reference import Ago, parse_time

F = TypeVar("F", bound=Callable[..., Any])


def limit_option(default: int) -> Callable[[F], F]:
    """``-n``: how many to list."""
    return click.option(
        "-n",
        "--limit",
        type=click.IntRange(min=1),
        default=default,
        metavar="COUNT",
        help=f"How many at most, {default} by default.",
    )


def times_option(function: F) -> F:
    """``-n``: how often to do it."""
    return click.option(
        "-n",
        "--times",
        type=click.IntRange(min=1),
        default=1,
        metavar="COUNT",
        help="How often, once by default.",
    )(function)


def yes_option(function: F) -> F:
    """``--yes``: do it without asking."""
    return click.option("-y", "--yes", is_flag=True, help="Do not ask.")(function)


def dry_run_option(function: F) -> F:
    """``--dry-run``: show what would happen."""
    text = "Change nothing, only show what would be done."
    return click.option("-n", "--dry-run", is_flag=True, help=text)(function)


def as_time(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> int | None:
    """A callback: a time as people write it, as microseconds."""
    parsed = parse_time(value) if value is not None else None
    if value is not None and parsed is None:
        example = "try '5 minutes ago', '2026-11-15' or '2026-11-15 10:00'"
        raise click.BadParameter(f"{value!r} is not a time; {example}", ctx, param)
    if isinstance(parsed, Ago):
        return now() - parsed.microseconds
    return parsed.at if parsed is not None else None
