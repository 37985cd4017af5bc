"""System calls of Python that change files, counted, and broken at one of them."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from typing import Any

CHANGES = ("rename", "link", "symlink", "unlink", "mkdir", "rmdir", "fchmod", "write")
SYNCS = ("fsync",)
# Calls that need space; a full disk lets the others through.
NEED_SPACE = {"rename", "link", "symlink", "mkdir", "write", "fsync"}


class BrokenCalls:
    """Breaks the ``at``-th call of ``os`` that changes or syncs a file.

    ``how`` is ``kill``; ``cut``, which takes half of what is not synced from each file
    before; or ``full``, where all calls that need space fail from there on for as long
    as ``lasting`` says.
    """

    def __init__(self, at: int, how: str, *, lasting: int = 1) -> None:
        self.at = at
        self.how = how
        self.lasting = lasting
        self.calls = 0
        self._unsynced: dict[int, int] = {}  # inode: a descriptor of our own
        self._real = {name: getattr(os, name) for name in (*CHANGES, *SYNCS)}

    def install(self) -> None:
        """Put the counting calls in place of the real ones."""
        for name in self._real:
            setattr(os, name, self._counting(name))

    def remove(self) -> None:
        """Put the real calls back."""
        for name, real in self._real.items():
            setattr(os, name, real)

    def _counting(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            self._meet(name)
            if name == "write":
                inode = os.fstat(arguments[0]).st_ino
                if inode not in self._unsynced:
                    self._unsynced[inode] = os.dup(arguments[0])
            result = self._real[name](*arguments, **keywords)
            if name == "fsync":
                held = self._unsynced.pop(os.fstat(arguments[0]).st_ino, None)
                if held is not None:
                    os.close(held)
            return result

        return call

    def _meet(self, name: str) -> None:
        if self.how == "full" and name not in NEED_SPACE:
            return
        self.calls += 1
        if not self.at <= self.calls < self.at + self.lasting:
            return
        if self.how == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.how == "cut":
            for descriptor in self._unsynced.values():
                os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)
