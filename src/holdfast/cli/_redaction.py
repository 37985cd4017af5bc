"""Regular expressions for texts that a page hides."""

from __future__ import annotations

import re
from collections.abc import Callable

import click

REDACTED = "[redacted]"


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
