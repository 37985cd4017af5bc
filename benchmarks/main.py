"""The command line of the benchmarks: what to measure, and where results go."""

from __future__ import annotations

import argparse
import os
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson

from benchmarks import page
from benchmarks.apart import frameworks
from benchmarks.append import append
from benchmarks.cli import cli
from benchmarks.coding_session import coding_session
from benchmarks.concurrency import processes, savers
from benchmarks.contest.disk import sync_time
from benchmarks.contest.units import duration
from benchmarks.delta_channels import delta_channels
from benchmarks.directory import directory
from benchmarks.disk import disk, drawn
from benchmarks.effects import effects
from benchmarks.environment import environment
from benchmarks.keys import keys
from benchmarks.langgraph_savers import langgraph
from benchmarks.lineage import fork, history
from benchmarks.measure import Bench, bench
from benchmarks.openai_sessions import openai_sessions
from benchmarks.postgres import postgres
from benchmarks.report import as_json, comparison, failed, progress
from benchmarks.search import search
from benchmarks.startup import startup
from benchmarks.states import load, save
from benchmarks.streams import streams
from benchmarks.telemetry import telemetry
from benchmarks.viewer import viewer
from benchmarks.workspace import workspace

CHART = Path(__file__).resolve().parent.parent / "docs" / "disk-size.svg"

BENCHMARKS: dict[str, Callable[[Bench], None]] = {
    "import": startup,
    "cli": cli,
    "append": append,
    "save": save,
    "load": load,
    "fork": fork,
    "history": history,
    "effects": effects,
    "streams": streams,
    "telemetry": telemetry,
    "keys": keys,
    "savers": savers,
    "processes": processes,
    "disk": disk,
    "directory": directory,
    "workspace": workspace,
    "coding session": coding_session,
    "search": search,
    "viewer": viewer,
    "postgres": postgres,
    "langgraph": langgraph,
    "delta channels": delta_channels,
    "openai": openai_sessions,
    "frameworks": frameworks,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and keep the results; 1 if something could not be measured."""
    options = _options(arguments)
    with bench(quick=options.quick) as run:
        facts = environment(run.folder)
        for name, fact in facts.items():
            print(f"{name}: {fact}")
        load = os.getloadavg()[0]
        for name in options.only or BENCHMARKS:
            _measure(run, name)
        run.notes.append(f"load average: {load:.2f} before the run")
    _show(run)
    _keep(run, facts, options.json, options.chart)
    return int(any(row.problem for row in run.rows))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument(
        "--only",
        action="append",
        choices=[*BENCHMARKS],
        metavar="NAME",
        help=f"one of {', '.join(BENCHMARKS)}; may be repeated",
    )
    whole = "of a whole run; with --quick or --only, written only if named"
    parser.add_argument("--json", type=Path, metavar="PATH", help=f"results {whole}")
    parser.add_argument("--chart", type=Path, metavar="PATH", help=f"sizes {whole}")
    options = parser.parse_args(arguments)
    if not options.quick and not options.only:
        options.json = options.json or page.RESULTS
        options.chart = options.chart or CHART
    return options


def _measure(run: Bench, name: str) -> None:
    start = time.monotonic()
    sync = duration(sync_time(run.folder))
    print(f"measuring {name}, fdatasync {sync} …", end=" ", flush=True)
    try:
        BENCHMARKS[name](run)
    except Exception as error:  # noqa: BLE001 - the others are still worth measuring
        traceback.print_exc()
        run.rows.append(failed(name, f"{type(error).__name__}: {error}"))
    print(f"{time.monotonic() - start:.0f} s", flush=True)
    run.syncs[name] = sync


def _show(run: Bench) -> None:
    print("", comparison(run.rows), "", sep="\n")
    if run.series:
        print(progress(run.series), "", sep="\n")
    for note in run.notes:
        print(note)
    targets = [row for row in run.rows if row.limit is not None]
    reached = sum(row.met is True for row in targets)
    print(f"{reached} of {len(targets)} targets reached")
    for row in run.rows:
        if row.met is False:
            print(f"{row.work}: {row.verdict}")


def _keep(
    run: Bench, facts: dict[str, str], results: Path | None, picture: Path | None
) -> None:
    if results is not None:
        found = {
            "environment": facts,
            "quick": run.quick,
            "rows": [as_json(row) for row in run.rows],
            "stores": [as_json(series) for series in run.series],
            "notes": run.notes,
            "fdatasync before each": run.syncs,
        }
        results.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2) + b"\n")
    if results == page.RESULTS:
        page.main()
    if picture is not None and run.series:
        picture.parent.mkdir(exist_ok=True)
        picture.write_text(drawn(run.series))
