"""Ages as they are written on the command line: ``30d``, ``12h``, ``90m``, ``2w``."""

from __future__ import annotations

import re
from datetime import timedelta

import click

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(r"([0-9]{1,9}) ?(s|m|h|d|w)(?:ec|in|ours?|ays?|eeks?)?", re.ASCII)


def as_age(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> timedelta | None:
    """A callback: an age as people write it."""
    if value is None:
        return None
    match = _AGE.fullmatch(value)
    if match is None:
        text = f"{value!r} is not an age; try 30d, 12h or 2w"
        raise click.BadParameter(text, ctx, param)
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
