"""`holdfast bench`: a conversation in a Holdfast store, and in others."""

from __future__ import annotations

import dataclasses
import os
import signal
import tempfile

import click

from holdfast.cli import _command, _status
from holdfast.cli._diagnostics import VOLATILE, file_system
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import count_option, flag, option


@_command.command("bench")
@flag("--peers", help="Also measure agent frameworks that are installed.")
@flag("--quick", help="Measure less, in under a minute.")
@count_option("--turns", "Turns of the chat, 500 by default, 100 with --quick.")
@option(
    "--at",
    "FOLDER",
    "Measure on the disk of this folder, the temporary one by default.",
    type=click.Path(exists=True, file_okay=False, writable=True),
)
@option(
    "--chart",
    "FILE",
    "Also draw the sizes on disk, as SVG.",
    type=click.Path(dir_okay=False, writable=True),
)
def command(
    cli: Invocation,
    *,
    peers: bool,
    quick: bool,
    turns: int | None,
    at: str | None,
    chart: str | None,
) -> int:
    """Measure Holdfast on this machine, side by side with other stores.

    The same chat is saved turn by turn in each store. The table shows the bytes on
    disk, the time of a turn at the end of the chat and how it grew, the processor time
    of the first load in a new process and of the last ten messages, and turns that a
    killed process had saved and that were lost. Ratios compare with what Holdfast has
    for the same work: above 1x Holdfast is better. Where it is worse is listed.

    Works in a new folder that is removed at the end; no store of yours is opened.
    The exit status is 1 if Holdfast lost a turn or could not be measured.
    """
    # Imported here: `holdfast --help` loads this module.
    from holdfast.bench.figures import FULL, QUICK  # noqa: PLC0415
    from holdfast.bench.peers import chosen  # noqa: PLC0415
    from holdfast.bench.report import measure  # noqa: PLC0415
    from holdfast.cli._bench_lines import lines  # noqa: PLC0415

    size = QUICK if quick else FULL
    if turns is not None:
        size = dataclasses.replace(size, turns=turns)
    place = _place(cli, at)
    # A run that is ended from outside removes its folder, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with cli.progress("Measuring") as progress:
        report = measure(chosen(frameworks=peers), size, at, progress)
    report.environment["disk"] = place
    if chart is not None:
        with open(chart, "w", encoding="utf-8") as file:
            file.write(report.svg())
    cli.out.answer("bench/1", report.document(), lines(report))
    return _status.OK if report.is_good else _status.NEGATIVE


def _place(cli: Invocation, at: str | None) -> str:
    """Where files go, with a remark if that is no disk."""
    folder = os.path.realpath(at or tempfile.gettempdir())
    kind = file_system(folder) or "unknown file system"
    if kind in VOLATILE:
        cli.out.note(f"{folder} is in memory; choose a folder on a disk with --at")
    return f"{kind} at {folder}"
