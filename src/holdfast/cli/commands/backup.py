"""`holdfast backup`: a copy of the store while it is in use."""

from __future__ import annotations

import contextlib
import glob
import os
import threading
from collections.abc import Generator

import click

import holdfast
from holdfast.cli import _command, _status
from holdfast.cli._given_key import given_key
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import flag
from holdfast.cli._text import size
from holdfast.cli.terminal.progress import ProgressReport
from holdfast.errors import Corrupt

REPORT_SECONDS = 0.2


@_command.command("backup")
@click.argument("file", type=click.Path())
@flag("--check", help="Verify the whole copy.")
def command(cli: Invocation, *, file: str, check: bool) -> int:
    """Copy the whole store while it is in use.

    The copy is a store with the content of one moment. FILE appears only when the copy
    is complete. For PostgreSQL, use its own backup tools, or `export`.
    """
    target = os.path.abspath(file)
    with cli.reading() as store:
        total = store.stats().file_bytes
        with cli.progress("Copying") as progress, _watched(target, total, progress):
            store.backup(target)
    address = f"dir:{target}" if os.path.isdir(target) else target
    if check:
        _check(address)
    copied = _size(target)
    cli.out.done(
        "backup/1",
        {"file": file, "bytes": copied, "checked": check},
        (file, "name"),
        (f"  {size(copied)}{', checked' if check else ''}", "faint"),
    )
    return _status.OK


def _check(address: str) -> None:
    with holdfast.open(address, read_only=True, key=given_key()) as copy:
        found = copy.verify()
    if not found.ok:
        raise Corrupt(address, str(found.problems[0]))


def _size(path: str) -> int:
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(entry.stat().st_size for entry in os.scandir(path) if entry.is_file())


@contextlib.contextmanager
def _watched(target: str, total: int, progress: ProgressReport) -> Generator[None]:
    """Report the size of the unfinished copy from time to time."""
    done = threading.Event()

    def look() -> None:
        while not done.wait(REPORT_SECONDS):
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
