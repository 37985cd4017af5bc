"""The program of the processes in which stores are run: ``worker STORE``.

It answers each line of its input, a command and its arguments:

    warm            "done", when everything is imported that a store needs
    open PATH DONE  "done"; the conversation has so many turns already
    save COUNT      for each turn its seconds, as soon as it is saved
    close           "done"
    load PATH       the seconds of opening and loading, and the number of messages
    last PATH       the same for the last ten messages

A turn is measured by the clock, because waiting for the disk is a part of it. Loading
waits for nothing; it is measured in processor time, on which other programs have less
influence.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TextIO

from benchmarks.contest.peers import opened
from benchmarks.contest.stores.chat import Chat
from benchmarks.contest.workload import Turn, growing

DONE = "done"
LAST = 10


class Commands:
    """The commands, each a method that gives the lines of its answer."""

    def __init__(self, store: str) -> None:
        self._opened = partial(opened, store)
        self._chat: Chat | None = None
        self._turns: Iterator[Turn] = iter(())

    def warm(self) -> Iterator[str]:
        """Use a store once: some of what it needs is imported only then."""
        with tempfile.TemporaryDirectory() as folder:
            chat = self._opened(os.path.join(folder, "chat"))
            chat.save(next(growing(1)))
            chat.load()
            chat.last(LAST)
            chat.close()
        yield DONE

    def open(self, path: str, done: str) -> Iterator[str]:
        """Open a store to save in it."""
        self._chat = self._opened(path)
        self._turns = itertools.islice(growing(sys.maxsize), int(done), None)
        yield DONE

    def save(self, count: str) -> Iterator[str]:
        """Save more turns in the store that is open."""
        assert self._chat is not None
        for turn in itertools.islice(self._turns, int(count)):
            start = time.perf_counter()
            self._chat.save(turn)
            yield str(time.perf_counter() - start)

    def close(self) -> Iterator[str]:
        """Close the store that is open."""
        assert self._chat is not None
        self._chat.close()
        yield DONE

    def load(self, path: str) -> Iterator[str]:
        """Open a store and load all messages."""
        return self._read(path, lambda chat: len(chat.load()))

    def last(self, path: str) -> Iterator[str]:
        """Open a store and load the last messages."""
        return self._read(path, lambda chat: len(chat.last(LAST)))

    def _read(self, path: str, read: Callable[[Chat], int]) -> Iterator[str]:
        start = _processor_time()
        chat = self._opened(path)
        found = read(chat)
        seconds = _processor_time() - start
        chat.close()
        yield f"{seconds} {found}"


def _processor_time() -> float:
    """Seconds of this process, and of those that it started and that have ended."""
    import resource

    own, started = (
        resource.getrusage(who)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + started.ru_utime + started.ru_stime


def main(store: str) -> None:
    """Answer until the input ends."""
    answers = _own_output()
    commands = Commands(store)
    for line in sys.stdin:
        name, *arguments = line.rstrip("\n").split("\t")
        for answer in getattr(commands, name)(*arguments):
            answers.write(f"{answer}\n")
    # Some frameworks leave threads that would keep the process from ending.
    os._exit(0)


def _own_output() -> TextIO:
    """The output for answers; what frameworks print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    main(*sys.argv[1:])
