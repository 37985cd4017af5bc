"""`holdfast doctor`: whether everything around the store is as it should be."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click
import msgspec

from holdfast._api.store import Store
from holdfast.cli import _checks, _command, _exits
from holdfast.cli._checks import Finding
from holdfast.cli._counted import counted
from holdfast.cli._session import Session
from holdfast.cli.terminal.output import Line
from holdfast.errors import Corrupt, HoldfastError, NotFound

SIGNS = {"good": ("ok", "good"), "note": ("note", "changed"), "bad": ("BAD", "bad")}


@_command.command("doctor")
@click.option("--quick", is_flag=True, help="Do not look through the whole store.")
def command(session: Session, *, quick: bool) -> int:
    """Look at the installation, the disk and the store for what may cause trouble.

    The build of SQLite, the file system and its free space, permissions, the log, the
    clock, and whether SQLite finds the file sound; `verify` checks more. Ends with 4 if
    the store is damaged, with 1 if something else is bad.
    """
    findings = list(_checks.installation())
    try:
        findings += _store(session, quick=quick)
    except NotFound as error:
        findings.append(Finding("store", "note", "none", str(error)))
    session.out.answer(
        "doctor/1",
        {"findings": [msgspec.structs.asdict(finding) for finding in findings]},
        _lines(findings, session),
    )
    if any(f.what == "integrity" and f.state == "bad" for f in findings):
        return _exits.DAMAGED
    is_bad = any(finding.state == "bad" for finding in findings)
    return _exits.NEGATIVE if is_bad else _exits.OK


def _store(session: Session, *, quick: bool) -> Iterator[Finding]:
    address = session.address
    scheme, colon, rest = address.partition(":")
    path = os.path.expanduser(
        rest if colon and scheme in {"sqlite", "dir"} else address
    )
    if "://" not in address:
        if not os.path.exists(path):
            raise NotFound(f"there is no store at {path}; check --store")
        yield Finding("store", "good", address)
        yield from _checks.place(path)
        if not os.path.isdir(path):
            yield _checks.log_left(path)
    try:
        with session.reading() as store:
            yield from _opened(store, quick=quick)
    except Corrupt as error:
        yield Finding("integrity", "bad", "it cannot be opened", str(error))
    except NotFound:
        raise
    except HoldfastError as error:
        yield Finding("opening", "bad", "it cannot be opened", str(error))


def _opened(store: Store, *, quick: bool) -> Iterator[Finding]:
    found = store.stats()
    checkpoints = counted(found.checkpoints, "checkpoint")
    threads = counted(found.threads, "thread")
    text = f"{checkpoints} in {threads}, format {found.format}"
    yield Finding("contents", "good", text)
    heads = [thread.head.saved_at for thread in store.threads(limit=1) if thread.head]
    yield _checks.clock(max(heads, default=None))
    if not quick:
        yield _integrity(store)


def _integrity(store: Store) -> Finding:
    problems = store.verify(quick=True).problems
    if not problems:
        return Finding("integrity", "good", "the files are sound")
    hint = f"{problems[0]}; run: holdfast verify"
    return Finding("integrity", "bad", counted(len(problems), "problem"), hint)


def _lines(findings: list[Finding], session: Session) -> Iterator[Line]:
    yield from session.out.table(
        (SIGNS[f.state], (f.what, "title"), (f.found, ""), (f.hint, "faint"))
        for f in findings
    )
