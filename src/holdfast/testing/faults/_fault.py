"""What can happen to a call of the disk, and at which call it does."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, NoReturn

import apsw

Kind = Literal["read", "write", "sync", "truncate", "delete", "rename"]

CHANGES: frozenset[Kind] = frozenset({"write", "sync", "truncate", "delete", "rename"})


class Call(NamedTuple):
    """An operation on a file that is about to be done."""

    kind: Kind
    path: str
    offset: int = 0
    data: bytes = b""


Effect = Callable[[Call], None]


def kill(_: Call) -> NoReturn:
    """End the process as ``kill -9`` does: nothing is closed, flushed or unlocked."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a killed process went on")


def disk_full(call: Call) -> None:
    """There is no space left: writes fail, all other calls work."""
    if call.kind == "write":
        raise apsw.FullError("no space left on device (injected)")


_IO_ERRORS: dict[Kind, int] = {
    "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "delete": apsw.SQLITE_IOERR_DELETE,
    "rename": apsw.SQLITE_IOERR_ACCESS,
}


def io_error(call: Call) -> NoReturn:
    """The device fails."""
    raise apsw.exception_for(_IO_ERRORS[call.kind])


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens at the ``at``-th call, counted from 1, of the given kinds.

    With ``torn``, half of a write is done first. With ``lasting``, it also happens at
    every later call. If the effect returns, the call is done as if there were no fault.
    """

    at: int
    effect: Effect
    kinds: frozenset[Kind] = CHANGES
    torn: bool = False
    lasting: bool = False

    def strikes(self, number: int) -> bool:
        """Whether the call with this number meets the fault."""
        return number == self.at or (self.lasting and number > self.at)
