"""`holdfast verify`: check every checksum, digest and reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

import click
import msgspec

from holdfast._engine.upkeep.salvage import Salvaged
from holdfast._engine.upkeep.verify import Problem, Verification
from holdfast.cli import _command, _status
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import flag, option
from holdfast.cli._salvaged import problem_lines, salvage_to, salvaged_lines
from holdfast.cli._text import counted
from holdfast.cli.terminal.tables import Line
from holdfast.errors import Corrupt, FormatMismatch


@_command.command("verify")
@option(
    "--repair",
    "FILE",
    "If something is damaged, write all that can be read to a new store FILE.",
)
@option(
    "--seal",
    "FILE",
    "Check also that the store holds what it held when `seal` wrote FILE.",
    type=click.File(encoding="utf-8"),
)
@flag("--quick", help="Check only the files, not every stored value.")
@flag("--accept-loss", help="Go on without changes that a damaged log has lost.")
def command(
    cli: Invocation,
    *,
    repair: str | None,
    seal: TextIO | None,
    quick: bool,
    accept_loss: bool,
) -> int:
    """Check every checksum, digest and reference of the store.

    The exit status is 4 if anything is damaged. The damaged store is never changed:
    `--repair` writes all that can be read to a new FILE (or dir:FOLDER), even if the
    store is too damaged to be opened. A store whose log was damaged after a crash is
    not opened any more; with `--accept-loss` it is, from now on and by all programs.
    """
    if accept_loss:
        cli.writing(accept_loss=True).close()
    try:
        with cli.reading() as store, cli.progress("Verifying") as progress:
            text = None if seal is None else seal.read()
            found = store.verify(quick=quick, seal=text, progress=progress)
    except (Corrupt, FormatMismatch) as error:
        if repair is None:
            raise
        found = Verification(0, 0, 0, (Problem(str(error)),))
    saved = None
    if repair is not None and not found.ok:
        saved = salvage_to(cli, repair)
    cli.out.answer("verify/1", _document(found, saved), _lines(found, saved, repair))
    return _status.OK if found.ok else _status.DAMAGED


def _document(found: Verification, saved: Salvaged | None) -> dict[str, object]:
    repaired = {} if saved is None else {"repaired": msgspec.to_builtins(saved)}
    return {"ok": found.ok, **msgspec.to_builtins(found), **repaired}


def _lines(
    found: Verification, saved: Salvaged | None, repair: str | None
) -> Iterator[Line]:
    threads = counted(found.threads, "thread")
    total = f"{counted(found.checkpoints, 'checkpoint')} in {threads}"
    if found.ok:
        yield (
            ("sound", "good"),
            (f"  {total}, {counted(found.segments, 'segment')}", ""),
        )
        if repair is not None:
            yield (("there is nothing to repair", "faint"),)
        return
    yield (
        ("damaged", "bad"),
        (f"  {counted(len(found.problems), 'problem')}, {total}", ""),
    )
    yield from problem_lines(found.problems)
    if saved is None:
        yield (("to save the rest: holdfast salvage FILE", "faint"),)
        return
    yield from salvaged_lines(saved, repair or "")
