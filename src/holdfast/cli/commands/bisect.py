"""`holdfast bisect`: the first checkpoint for which a command fails."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import click
import orjson

from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._values.records import Checkpoint
from holdfast.cli import _command, _status
from holdfast.cli._completion import THREAD
from holdfast.cli._invocation import Invocation
from holdfast.cli._lines import marks
from holdfast.cli._options import option
from holdfast.cli._resolve import thread_named
from holdfast.cli._text import time
from holdfast.cli.terminal.tables import Line
from holdfast.views.documents import checkpoint_document, plain
from holdfast.views.references import shown_reference

CHUNK = 500
SKIP = 125
# Statuses from here on are signals, or mean that the command could not be run.
ABORTED = 128
Verdict = Literal["good", "bad", "skip"]


@_command.command("bisect")
@click.argument("thread", type=THREAD)
@click.argument(
    "command_line",
    nargs=-1,
    type=click.UNPROCESSED,
    required=True,
    metavar="COMMAND...",
)
@option("--good", "REF", "A checkpoint that is known to be good.")
@option(
    "--bad",
    "REF",
    "A checkpoint that is known to be bad; by default the head is tested.",
)
def command(
    cli: Invocation,
    *,
    thread: str,
    command_line: tuple[str, ...],
    good: str | None,
    bad: str | None,
) -> int:
    """Find the first checkpoint for which a command fails.

    It is looked for on THREAD. Write COMMAND after `--`. It gets the state as JSON on
    its standard input, and HOLDFAST_THREAD, HOLDFAST_CHECKPOINT and HOLDFAST_STEP in
    its environment. Its exit status is its answer: 0 is good, 125 is unknown, any other
    up to 127 is bad; a higher status stops the search. Its output goes to standard
    error. REF is a reference such as @12 or label:x.
    """
    with cli.reading() as store:
        found = thread_named(store, thread)
        trial = _Trials(cli, store, found, command_line)
        trial.line = _line(found, good, bad)
        last = len(trial.line) - 1
        if bad is None and trial.judge(last) != "bad":
            cli.out.answer("bisect/1", trial.document(None), trial.nothing())
            return _status.NEGATIVE
        outcome = first_bad(last, trial.judge)
        document = trial.document(outcome)
        cli.out.answer("bisect/1", document, list(trial.lines(outcome)))
    return _status.NEGATIVE if outcome.unsure else _status.OK


def _line(thread: Thread, good: str | None, bad: str | None) -> list[str]:
    """The ids of the checkpoints to search, oldest first."""
    start = thread.get(bad or "@")
    known = thread.get(good).id if good is not None else None
    ids, page = [start.id], thread.history(CHUNK, before=start)
    while page:
        for checkpoint in page:
            if checkpoint.id == known:
                return ids[::-1]
            ids.append(checkpoint.id)
        page = thread.history(CHUNK, before=page[-1])
    if known is not None:
        text = f"{good} is not an ancestor of {bad or 'the head'}; see holdfast log"
        raise click.UsageError(text)
    return ids[::-1]


class _Trials:
    """Runs the command on one checkpoint after another."""

    def __init__(
        self, cli: Invocation, store: Store, thread: Thread, command: tuple[str, ...]
    ) -> None:
        self._session, self._store, self._thread = cli, store, thread
        self._command = command
        self._tested: list[dict[str, object]] = []
        self.line: list[str] = []

    def judge(self, index: int) -> Verdict:
        checkpoint = self._thread.get(self.line[index])
        status = self._run(checkpoint)
        verdict: Verdict = "good" if status == 0 else "bad"
        verdict = "skip" if status == SKIP else verdict
        self._tested.append(
            {
                "id": checkpoint.id,
                "step": checkpoint.step,
                "status": status,
                "verdict": verdict,
            }
        )
        self._session.out.note(f"{self._name(checkpoint)}: {verdict}")
        return verdict

    def _run(self, checkpoint: Checkpoint) -> int:
        state = orjson.dumps(plain(self._thread.load(checkpoint)))
        about = {
            "HOLDFAST_THREAD": self._thread.id,
            "HOLDFAST_CHECKPOINT": checkpoint.id,
            "HOLDFAST_STEP": str(checkpoint.step),
        }
        try:
            status = subprocess.run(  # noqa: S603 - running it is what was asked for
                self._command,
                input=state,
                stdout=sys.stderr.fileno(),
                env={**os.environ, **about},
                check=False,
            ).returncode
        except OSError as error:
            text = f"{self._command[0]} cannot be run: {error.strerror}"
            raise click.UsageError(text) from error
        if not 0 <= status < ABORTED:
            text = f"{self._command[0]} ended with {status}, which stops the search"
            raise click.UsageError(text)
        return status

    def _name(self, checkpoint: Checkpoint) -> str:
        return shown_reference(self._store, checkpoint, self._thread)

    # --- the answer -------------------------------------------------------------------

    def document(self, outcome: Outcome | None) -> dict[str, object]:
        found = None if outcome is None else self._at(outcome.first_bad)
        unsure = () if outcome is None else outcome.unsure
        return {
            "thread": self._thread.id,
            "first_bad": None if found is None else checkpoint_document(found),
            "unsure": [self.line[index] for index in unsure],
            "tested": self._tested,
        }

    def nothing(self) -> Iterator[Line]:
        yield ((f"the head of {self._thread.id} is not bad", ""),)

    def lines(self, outcome: Outcome) -> Iterator[Line]:
        found = self._at(outcome.first_bad)
        is_sure = not outcome.unsure
        said = "is the first bad one" if is_sure else "is bad, and perhaps the first"
        yield (
            (self._name(found), "reference"),
            (f" {said}  ", ""),
            (f"{time(found.saved_at)}  {found.kind}", "faint"),
            *(part for mark in marks(found) for part in ((" ", ""), mark)),
        )
        for index in outcome.unsure:
            name = self._name(self._at(index))
            yield (("  unknown: ", "faint"), (name, "reference"))

    def _at(self, index: int) -> Checkpoint:
        return self._thread.get(self.line[index])


class Outcome(NamedTuple):
    """The index of the first bad item; ``unsure`` are earlier indexes not judged."""

    first_bad: int
    unsure: tuple[int, ...]


def first_bad(bad: int, judge: Callable[[int], Verdict]) -> Outcome:
    """The first bad item; the item at index ``bad`` is known to be bad.

    An item that cannot be judged is skipped, and its neighbours are judged instead.
    """
    good = -1
    skipped: set[int] = set()
    while candidates := [n for n in range(good + 1, bad) if n not in skipped]:
        middle = (good + bad) / 2
        index = min(candidates, key=lambda candidate: abs(candidate - middle))
        verdict = judge(index)
        if verdict == "skip":
            skipped.add(index)
        elif verdict == "bad":
            bad = index
        else:
            good = index
    return Outcome(bad, tuple(sorted(n for n in skipped if good < n < bad)))
