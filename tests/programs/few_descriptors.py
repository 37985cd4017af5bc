"""Makes calls with no descriptor left, with one, with two … until they succeed.

usage: few_descriptors.py file|dir FOLDER

Prints a line for each call: the codes of its errors, other errors by their class, and
whether the store was sound after each and nothing of it was missing.
"""

from __future__ import annotations

import contextlib
import glob
import io
import itertools
import os
import resource
import sys
from collections.abc import Callable, Iterator

import holdfast
from holdfast import Store, Workspace
from inner.cli import run_command_line
from support.children import report

LISTED = "/proc/self/fd"
# So many times in a row, since files that were opened once may stay open.
ENOUGH, MOST = 2, 40


class Calls:
    """What is called; each makes files of its own."""

    def __init__(self, kind: str, folder: str) -> None:
        self.prefix = "dir:" if kind == "dir" else ""
        self.folder = folder
        self.address = f"{self.prefix}{folder}/store"
        self._numbers = itertools.count()

    def new(self) -> str:
        return f"{self.folder}/new-{next(self._numbers)}"

    def append(self, store: Store) -> None:
        store.thread("chat").append(messages=["x"])

    def load(self, store: Store) -> None:
        store.thread("chat").load()

    def search(self, store: Store) -> None:
        store.search("hello")

    def verify(self, store: Store) -> None:
        assert store.verify().ok

    def seal(self, store: Store) -> None:
        store.seal()

    def export_to(self, store: Store) -> None:
        store.export_to(self.new())

    def export_lines(self, store: Store) -> None:
        store.export_lines(self.new())

    def backup(self, store: Store) -> None:
        store.backup(self.new())

    def compact(self, store: Store) -> None:
        store.compact()

    def copy_to(self, store: Store) -> None:
        with holdfast.open(f"dir:{self.new()}") as other:
            store.copy_to(other)

    def salvage(self, _: Store) -> None:
        found = holdfast.salvage(self.address, self.new())
        assert (found.threads, found.lost) == (2, ())

    def files(self, store: Store) -> None:
        store.thread("w").save({}, files=Workspace(self.folder))

    def open(self, _: Store) -> None:
        with holdfast.open(self.address) as store:
            store.thread("chat").load()

    def read(self, _: Store) -> None:
        with holdfast.open(self.address, read_only=True) as store:
            store.thread("chat").load()

    def make(self, _: Store) -> None:
        with holdfast.open(f"{self.prefix}{self.new()}") as store:
            store.thread("chat").save({"n": 1})

    def log(self, _: Store) -> None:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = run_command_line(["log", "chat", "--store", self.address])
        if status:
            assert "internal error" not in said.getvalue()
            raise holdfast.HoldfastError(said.getvalue(), code="cli")


NAMES = [name for name in vars(Calls) if name != "new" and name[0] != "_"]


@contextlib.contextmanager
def left(count: int) -> Iterator[None]:
    """So many more files can be opened meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir(LISTED)))
    used = [os.dup(0)]
    while used[-1] < highest:
        used.append(os.dup(0))
    os.close(used.pop())
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (max([highest, *used]) + 1 + count, hard)
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for file in used:
            os.close(file)


def attempt(call: Callable[[Store], object], store: Store, count: int) -> str:
    """The code of its error, or the class of one that is not ours."""
    try:
        with left(count):
            call(store)
    except holdfast.HoldfastError as error:
        return error.code
    except Exception as error:  # noqa: BLE001 - it is reported
        return repr(error)
    return ""


def main(kind: str, folder: str) -> None:
    calls = Calls(kind, folder)
    with holdfast.open(calls.address) as store:
        store.thread("chat").append(messages=["hello"] * 9)
        store.thread("w").save({})
    messages = 9
    for name in NAMES:
        errors: set[str] = set()
        count = succeeded = 0
        is_sound = True
        while succeeded < ENOUGH and count < MOST:
            with holdfast.open(calls.address) as store:
                for lines in glob.glob(f"{folder}/store/*.jsonl"):
                    os.utime(lines)  # they have to be read again
                error = attempt(getattr(calls, name), store, count)
                store.thread("chat").append(messages=["and then"])
                messages += 1 + (name == "append" and not error)
                is_sound &= store.verify().ok
                is_sound &= len(store.thread("chat").load()["messages"]) == messages
            count += 1
            succeeded = 0 if error else succeeded + 1
            errors |= {error} - {""}
        report({"call": name, "errors": sorted(errors), "is_sound": is_sound})


if __name__ == "__main__":
    main(*sys.argv[1:])
