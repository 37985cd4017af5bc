"""The logs of the servers that tests start, read for what no client is told."""

from __future__ import annotations

from pathlib import Path

# What the server writes when it has ended one of two that wait for each other. The
# store repeats what was ended, so that only the log tells.
DEADLOCK = "deadlock detected"
# Enough for the statements of both.
EXCERPT = 3000


class ServerLogs:
    """Logs that grow, and what was found in those of servers that are gone."""

    def __init__(self) -> None:
        self._read: dict[Path, int] = {}
        self._found: list[str] = []

    def watch(self, log: Path) -> None:
        self._read[log] = 0

    def leave(self, log: Path) -> None:
        """Read a log to its end before it is removed."""
        self._look(log)
        self._read.pop(log, None)

    def deadlocks(self) -> list[str]:
        """What was logged about deadlocks since this was asked last."""
        for log in self._read:
            self._look(log)
        found, self._found = self._found, []
        return found

    def _look(self, log: Path) -> None:
        known = self._read.get(log)
        if known is None or not log.exists() or log.stat().st_size == known:
            return
        with log.open("rb") as file:
            file.seek(known)
            text = file.read().decode(errors="replace")
            self._read[log] = file.tell()
        _, *after = text.split(DEADLOCK)
        self._found += [DEADLOCK + part[:EXCERPT] for part in after]


LOGS = ServerLogs()
