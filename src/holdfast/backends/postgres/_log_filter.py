"""Keeps psycopg from logging warnings about our pools: callers get errors instead.

The warnings can be seen by setting the logger ``psycopg`` to the level DEBUG. Warnings
about the program's own pools and connections are left as they are.
"""

from __future__ import annotations

import logging
from typing import cast

from holdfast.backends.postgres._timeout import TimedAsyncConnection, TimedConnection

POOL = "holdfast"
OURS = (TimedConnection, TimedAsyncConnection)


class DebugFilter(logging.Filter):
    """Lowers warnings about our pools and connections to the level DEBUG."""

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


def install_filter() -> None:
    """Add the filter to psycopg's loggers, once."""
    for name in ("psycopg", "psycopg.pool"):
        logger = logging.getLogger(name)
        if not any(isinstance(found, DebugFilter) for found in logger.filters):
            logger.addFilter(DebugFilter())
