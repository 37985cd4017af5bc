"""`holdfast doctor`: checks of the installation, the disk and the store."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

import msgspec

from holdfast._api.address import store_address
from holdfast._api.store import Store
from holdfast._engine.upkeep import erase
from holdfast.cli import _command, _diagnostics, _status
from holdfast.cli._diagnostics import Diagnostic
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import flag
from holdfast.cli._text import counted
from holdfast.cli.terminal.tables import Line
from holdfast.errors import Corrupt, HoldfastError, NotFound

SIGNS = {"good": ("ok", "good"), "note": ("note", "changed"), "bad": ("BAD", "bad")}


@_command.command("doctor")
@flag("--quick", help="Do not read the whole store.")
def command(cli: Invocation, *, quick: bool) -> int:
    """Check the installation, the disk and the store for problems.

    Checks the build of SQLite, the file system and its free space, permissions, the
    write-ahead log, the clock, and SQLite's own integrity check; `verify` checks more.
    The exit status is 4 if the store is damaged, 1 if another check is bad.
    """
    findings = list(_diagnostics.installation())
    try:
        findings += _store(cli, quick=quick)
    except NotFound as error:
        findings.append(Diagnostic("store", "note", "none", str(error)))
    cli.out.answer(
        "doctor/1",
        {"findings": [msgspec.structs.asdict(finding) for finding in findings]},
        _lines(findings, cli),
    )
    if any(f.what == "integrity" and f.state == "bad" for f in findings):
        return _status.DAMAGED
    is_bad = any(finding.state == "bad" for finding in findings)
    return _status.NEGATIVE if is_bad else _status.OK


def _store(cli: Invocation, *, quick: bool) -> Iterator[Diagnostic]:
    address = cli.address
    scheme, colon, rest = address.partition(":")
    path = os.path.expanduser(
        rest if colon and scheme in {"sqlite", "dir"} else address
    )
    if store_address(address).scheme in {"sqlite", "dir"}:
        if not os.path.exists(path):
            raise NotFound(f"there is no store at {path}; check --store")
        yield Diagnostic("store", "good", address)
        yield from _diagnostics.disk(path)
        if not os.path.isdir(path):
            yield _diagnostics.log_left(path)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", RuntimeWarning)
            with cli.reading() as store:
                found = list(_opened(store, quick=quick))
        yield from (Diagnostic("file", "note", "odd", str(w.message)) for w in told)
        yield from found
    except Corrupt as error:
        yield Diagnostic("integrity", "bad", "it cannot be opened", str(error))
    except NotFound:
        raise
    except HoldfastError as error:
        yield Diagnostic("opening", "bad", "it cannot be opened", str(error))


def _opened(store: Store, *, quick: bool) -> Iterator[Diagnostic]:
    found = store.stats()
    checkpoints = counted(found.checkpoints, "checkpoint")
    threads = counted(found.threads, "thread")
    text = f"{checkpoints} in {threads}, format {found.format}"
    yield Diagnostic("contents", "good", text)
    encrypted = store.runner.context.keys is not None
    yield Diagnostic("encryption", "good", "by a key" if encrypted else "none")
    heads = [thread.head.saved_at for thread in store.threads(limit=1) if thread.head]
    yield _diagnostics.clock(max(heads, default=None))
    if store.runner.run(erase.is_unfinished):
        yield Diagnostic("erasure", "note", "not finished", erase.UNFINISHED)
    if not quick:
        yield _integrity(store)


def _integrity(store: Store) -> Diagnostic:
    problems = store.verify(quick=True).problems
    if not problems:
        return Diagnostic("integrity", "good", "the files are sound")
    hint = f"{problems[0]}; run: holdfast verify"
    return Diagnostic("integrity", "bad", counted(len(problems), "problem"), hint)


def _lines(findings: list[Diagnostic], cli: Invocation) -> Iterator[Line]:
    yield from cli.out.table(
        (SIGNS[f.state], (f.what, "title"), (f.found, ""), (f.hint, "faint"))
        for f in findings
    )
