"""Keeps the driver from writing to the terminal what callers are told by errors.

Its warnings about our pools and connections are heard by those who configure logging
for ``psycopg`` at the level of debugging; those about anybody else's stay as they are.
"""

from __future__ import annotations

import logging
from typing import cast

from holdfast.backends.postgres._driver import TimedAsyncConnection, TimedConnection

POOL = "holdfast"
OURS = (TimedConnection, TimedAsyncConnection)


class Quiet(logging.Filter):
    """Makes warnings about what is ours a matter of debugging."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno == logging.WARNING and self._is_ours(record.args):
            record.levelno, record.levelname = logging.DEBUG, "DEBUG"
            return logging.getLogger(record.name).isEnabledFor(logging.DEBUG)
        return True

    def _is_ours(self, arguments: object) -> bool:
        if not isinstance(arguments, tuple):
            return False
        named = cast("tuple[object, ...]", arguments)
        return any(
            argument == POOL
            or isinstance(getattr(argument, "connection", argument), OURS)
            for argument in named
        )


def be_quiet() -> None:
    """Called once, when the first connections are about to be made."""
    for name in ("psycopg", "psycopg.pool"):
        logger = logging.getLogger(name)
        if not any(isinstance(found, Quiet) for found in logger.filters):
            logger.addFilter(Quiet())
