"""`holdfast backup`: a copy of the store while others go on using it."""

from __future__ import annotations

import contextlib
import glob
import os
import threading
from collections.abc import Generator

import click

import holdfast
from holdfast.cli import _command, _documents, _exits
from holdfast.cli._session import Session
from holdfast.cli.terminal.progress import Progress
from holdfast.errors import Corrupt

GLANCE_SECONDS = 0.2


@_command.command("backup")
@click.argument("file", type=click.Path())
@click.option("--check", is_flag=True, help="Verify the copy from end to end.")
def command(session: Session, *, file: str, check: bool) -> int:
    """Copy the whole store to a new FILE while others go on writing.

    The copy is the store at one moment, and a store itself. It is there when it is
    whole, or not at all. PostgreSQL has its own tools; `export` works with it as well.
    """
    target = os.path.abspath(file)
    with session.reading() as store:
        total = store.stats().file_bytes
        with session.progress("Copying") as progress, _watched(target, total, progress):
            store.backup(target)
    place = f"dir:{target}" if os.path.isdir(target) else target
    if check:
        _check(place)
    size = _size(target)
    session.out.done(
        "backup/1",
        {"file": file, "bytes": size, "checked": check},
        (file, "name"),
        (f"  {_documents.size(size)}{', checked' if check else ''}", "faint"),
    )
    return _exits.OK


def _check(place: str) -> None:
    with holdfast.open(place, read_only=True) as copy:
        found = copy.verify()
    if not found.ok:
        raise Corrupt(place, str(found.problems[0]))


def _size(path: str) -> int:
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(entry.stat().st_size for entry in os.scandir(path) if entry.is_file())


@contextlib.contextmanager
def _watched(target: str, total: int, progress: Progress) -> Generator[None]:
    """Tell how much of a copy is there, by looking at it from time to time."""
    done = threading.Event()

    def look() -> None:
        while not done.wait(GLANCE_SECONDS):
            for part in glob.glob(f"{glob.escape(target)}.*.part"):
                with contextlib.suppress(OSError):
                    progress(min(_size(part), total), total)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
