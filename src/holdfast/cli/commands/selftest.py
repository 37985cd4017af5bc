"""`holdfast selftest`: the scorecard of reliability on this machine."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import click

from holdfast.cli import _command, _status
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import flag, option
from holdfast.cli._text import counted
from holdfast.cli.terminal.tables import Cell, Line
from holdfast.testing.trials import STORES, Effort, Result, selftest

VERDICTS = {"holds": "good", "broken": "bad", "not run": "changed"}
TITLES = ("", "row", "store", "wrong", "of", "wanted", "seconds", "")
RIGHT = (0, 3, 4, 5, 6)


@_command.command("selftest")
@flag("--quick", help="About a minute; the default.")
@flag("--full", help="The numbers of the scorecard; about twenty minutes.")
@option(
    "--store stores",
    "KIND",
    "file, dir or postgresql://...; may be repeated. By default file and dir.",
    multiple=True,
)
@option("--only", "ROW", "Only this row; may be repeated.", multiple=True)
@option(
    "--at",
    "FOLDER",
    "Where the temporary stores are made: on the file system that is to be tested.",
    type=click.Path(exists=True, file_okay=False, writable=True),
)
def command(
    cli: Invocation,
    *,
    quick: bool,
    full: bool,
    stores: tuple[str, ...],
    only: tuple[str, ...],
    at: str | None,
) -> int:
    """Test on this machine that nothing is lost, damaged or let in.

    Kills processes, cuts the power of a simulated disk, fills it up, flips bits, sends
    hostile input. It makes stores of its own and removes them; it never opens yours.
    The exit status is 1 if a promise does not hold. Interrupted with Ctrl-C it prints
    the rows that are finished. docs/reliability.md explains the rows.
    """
    if quick and full:
        raise click.UsageError("choose one of --quick and --full")
    effort: Effort = "full" if full else "quick"
    chosen = stores or ((cli.options.store,) if cli.options.store else STORES)
    # Ended like this it has to clean up as well.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    finished: list[Result] = []
    try:
        with cli.progress("Testing, percent") as progress:
            results = selftest(
                stores=chosen,
                effort=effort,
                only=only,
                at=at,
                progress=progress,
                finished=finished.append,
            )
    except KeyboardInterrupt:
        _print(finished, effort, cli)
        raise
    _print(results, effort, cli)
    is_broken = any(result.verdict == "broken" for result in results)
    return _status.NEGATIVE if is_broken else _status.OK


def _print(results: list[Result], effort: Effort, cli: Invocation) -> None:
    document = {"effort": effort, "rows": [_document(result) for result in results]}
    cli.out.answer("selftest/1", document, _lines(results, cli))


def _document(result: Result) -> dict[str, object]:
    return {
        "number": result.row.number,
        "row": result.row.name,
        "promise": result.row.promise,
        "store": result.kind,
        "verdict": result.verdict,
        "unit": result.row.unit,
        "wanted": result.wanted,
        "tried": result.count,
        "wrong": result.wrong,
        "examples": list(result.examples),
        "note": result.note,
        "seconds": round(result.seconds, 1),
    }


def _lines(results: list[Result], cli: Invocation) -> Iterator[Line]:
    titles: list[Cell] = [(title, "faint") for title in TITLES]
    yield from cli.out.table([titles, *map(_cells, results)], RIGHT)
    for result in results:
        for example in result.examples:
            yield ((f"{result.row.name}, {result.kind}: ", "title"), (example, "bad"))
    yield (("", ""),)
    yield ((_total(results), ""),)


def _cells(result: Result) -> list[Cell]:
    row = result.row
    number: Cell = (str(row.number), "faint")
    if result.verdict == "not run":
        note: Cell = (f"not run: {result.note}", VERDICTS["not run"])
        gap: list[Cell] = [("", "")] * 4
        return [number, (row.name, "title"), (result.kind, ""), *gap, note]
    verdict: Cell = (
        (result.verdict, VERDICTS[result.verdict]),
        (f"  {result.note}", "faint"),
    )
    return [
        number,
        (row.name, "title"),
        (result.kind, ""),
        (f"{result.wrong:,}", "bad" if result.wrong else ""),
        (f"{result.count:,}", ""),
        (f"{result.wanted:,} {row.unit}", "faint"),
        (f"{result.seconds:.1f}", "faint"),
        verdict,
    ]


def _total(results: list[Result]) -> str:
    verdicts = [result.verdict for result in results]
    broken = verdicts.count("broken")
    held = counted(verdicts.count("holds"), "row")
    return f"{held} held, {broken} broken, {verdicts.count('not run')} not run"
