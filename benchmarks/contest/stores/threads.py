"""Our threads: the whole state every turn, or only what is new."""

from __future__ import annotations

from collections.abc import Sequence

import holdfast
from benchmarks.contest.workload import Turn

NAME = "chat"


class SavingThread:
    """The whole state, every turn."""

    def __init__(self, path: str, *, compress: bool = False) -> None:
        self.store = holdfast.open(path, compress=compress)
        self.thread = self.store.thread(NAME)

    def save(self, turn: Turn) -> None:
        """Save the state; only what changed is stored."""
        self.thread.save({"messages": turn.messages})

    def load(self) -> Sequence[object]:
        """The state at the head."""
        found: list[object] = self.thread.load()["messages"]
        return found

    def last(self, count: int) -> Sequence[object]:
        """The end of the messages, without the others."""
        return self.thread.tail("messages", count)

    def close(self) -> None:
        """Close the file."""
        self.store.close()


class AppendingThread(SavingThread):
    """Only what is new, every turn."""

    def save(self, turn: Turn) -> None:
        """Append the new messages."""
        self.thread.append(messages=turn.added)


class CompactedThread(AppendingThread):
    """Compressed, and compacted when it is closed."""

    def __init__(self, path: str) -> None:
        super().__init__(path, compress=True)

    def close(self) -> None:
        """Compact the file and close it."""
        self.store.compact()
        super().close()


def compressed(path: str) -> AppendingThread:
    """As `AppendingThread`, with zstd."""
    return AppendingThread(path, compress=True)
