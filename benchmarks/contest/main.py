"""The same chat, saved turn by turn in a Holdfast store and in others.

The table shows the bytes on disk, the time of a turn at the end of the chat and how it
grew, the processor time of the first load in a new process and of the last ten
messages, and turns that a killed process had saved and that were lost. Ratios compare
with what Holdfast has for the same work: above 1x Holdfast is better. Where it is worse
is listed. The exit status is 1 if Holdfast lost a turn or could not be measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import orjson

from benchmarks.contest.figures import FULL, QUICK
from benchmarks.contest.lines import lines
from benchmarks.contest.peers import chosen
from benchmarks.contest.report import measure
from benchmarks.inner.cli import VOLATILE, file_system

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure in a new folder, which is removed at the end, and print."""
    options = _options(arguments)
    size = QUICK if options.quick else FULL
    if options.turns is not None:
        size = dataclasses.replace(size, turns=options.turns)
    place = _place(options.at)
    # A run that is ended from outside removes its folder, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        report = measure(chosen(frameworks=options.peers), size, options.at, _tell)
    except KeyboardInterrupt:
        return INTERRUPTED
    report.environment["disk"] = place
    if options.chart is not None:
        options.chart.write_text(report.svg(), encoding="utf-8")
    if options.json:
        print(orjson.dumps(report.document()).decode())
    else:
        for line in lines(report):
            print("".join(text for text, _ in line).rstrip())
    return 0 if report.is_good else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks contest",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--peers", action="store_true", help="also the frameworks that are installed"
    )
    parser.add_argument("--quick", action="store_true", help="less, in under a minute")
    parser.add_argument(
        "--turns",
        type=_count,
        metavar="N",
        help=f"turns of the chat, {FULL.turns} by default, {QUICK.turns} with --quick",
    )
    parser.add_argument(
        "--at",
        type=_folder,
        metavar="FOLDER",
        help="on the disk of this folder, the temporary one by default",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--chart", type=Path, metavar="FILE", help="also draw the sizes on disk, as SVG"
    )
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _folder(text: str) -> str:
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"{text} is no folder")
    return text


def _place(at: str | None) -> str:
    """Where files go, with a remark if that is no disk."""
    folder = os.path.realpath(at or tempfile.gettempdir())
    kind = file_system(folder) or "unknown file system"
    if kind in VOLATILE:
        remark = f"{folder} is in memory; choose a folder on a disk with --at"
        print(remark, file=sys.stderr)
    return f"{kind} at {folder}"


def _tell(done: int, total: int) -> None:
    """The progress: a line for each tenth of the run, the first at once."""
    tenth = max(1, total // 10)
    if done == 1 or not done % tenth:
        print(f"Measuring: {done} of {total}", file=sys.stderr, flush=True)
