"""Runs rows, each in a process of its own, some at a time."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import shutil
import signal
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

from holdfast._values.shortening import shortened
from holdfast.testing.trials.children import Child, Tell
from holdfast.testing.trials.task import NotRun, Row, Target, Task

Verdict: TypeAlias = Literal["holds", "broken", "not run"]
Progress: TypeAlias = Callable[[int, int], None]

EXAMPLES = 5
LONGEST_EXAMPLE = 500
PERCENT = 100
TICK = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a row on one kind of store.

    ``wrong`` of ``count`` trials did not hold; ``wanted`` is how many there had to be.
    """

    row: Row
    kind: str
    verdict: Verdict
    wanted: int
    count: int = 0
    wrong: int = 0
    examples: tuple[str, ...] = ()
    note: str = ""
    seconds: float = 0.0


Finished: TypeAlias = Callable[[Result], None]


@dataclass(frozen=True, slots=True)
class Job:
    """A row to be run on a kind of store, so many times, in at most so many seconds."""

    row: Row
    target: Target
    count: int
    limit: float = 3600.0


def run_jobs(
    jobs: Sequence[Job],
    *,
    processes: int = 1,
    progress: Progress | None = None,
    finished: Finished | None = None,
) -> list[Result]:
    """The results of all jobs in their order; ``finished`` gets each when it is there.

    No process is left behind, and the folder of a job is removed when it ends.
    """
    waiting = list(enumerate(jobs))
    running: dict[int, _Running] = {}
    results: dict[int, Result] = {}
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                number, job = waiting.pop(0)
                running[number] = _Running(job)
            _listen(list(running.values()))
            ended = {number: r for number, r in running.items() if r.has_ended()}
            for number, one in ended.items():
                results[number] = one.result()
                if finished is not None:
                    finished(results[number])
            running = {n: r for n, r in running.items() if n not in ended}
            if progress is not None:
                share = len(results) + sum(r.share for r in running.values())
                progress(int(share * PERCENT / len(jobs)), PERCENT)
    finally:
        for left in running.values():
            left.end()
    return [results[number] for number in range(len(jobs))]


@dataclass(slots=True)
class _Running:
    """A row that runs, and what it has reported."""

    job: Job
    began: float = field(default_factory=time.monotonic)
    share: float = 0.0
    reported: dict[str, Any] | None = None
    is_over: bool = False
    waiting: bytes = b""
    child: Child = field(init=False)

    def __post_init__(self) -> None:
        self.child = Child(partial(_work, self.job))
        # The child does it as well, so that the group exists before either needs it.
        with contextlib.suppress(OSError):
            os.setpgid(self.child.pid, self.child.pid)

    def read(self) -> None:
        """Read the reports of the row that have arrived."""
        read = os.read(self.child.fileno(), 1 << 16)
        self.is_over = self.is_over or not read
        *lines, self.waiting = (self.waiting + read).split(b"\n")
        for line in lines:
            report = json.loads(line)
            if isinstance(report, float | int):
                self.share = report
            else:
                self.reported = report

    def has_ended(self) -> bool:
        """True if the process of the row has ended, or has run past its limit."""
        return self.is_over or self._seconds() > self.job.limit

    def _seconds(self) -> float:
        return time.monotonic() - self.began

    def end(self) -> None:
        """End the process of the row and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()

    def result(self) -> Result:
        """End the processes of the row; returns its result."""
        seconds = self._seconds()
        self.end()
        shutil.rmtree(self.job.target.folder, ignore_errors=True)
        report = self.reported or {"wrong": 1, "examples": [self._silence()]}
        job = self.job
        return Result(
            row=job.row,
            kind=job.target.kind,
            verdict=_verdict(report, job.count),
            wanted=job.count,
            count=report.get("count", 0),
            wrong=report.get("wrong", 0),
            examples=tuple(report.get("examples", ())),
            note=report.get("note", report.get("not_run", "")),
            seconds=seconds,
        )

    def _silence(self) -> str:
        if not self.is_over:
            return f"it did not end within {self.job.limit:,.0f} seconds"
        return f"its process ended with status {self.child.status}, without a result"


def _verdict(report: dict[str, Any], wanted: int) -> Verdict:
    if "not_run" in report:
        return "not run"
    # Fewer trials than wanted prove nothing.
    is_enough = report.get("count", 0) >= wanted
    return "holds" if is_enough and not report["wrong"] else "broken"


def _listen(running: list[_Running]) -> None:
    ready, _, _ = select.select([r.child for r in running], [], [], TICK)
    for one in running:
        if one.child in ready:
            one.read()


# --- in the process of the row --------------------------------------------------------


def _work(job: Job, tell: Tell) -> None:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Messages of killed children would appear within the table of results.
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)
    tell(_report(job, tell))


def _report(job: Job, tell: Tell) -> dict[str, object]:
    seed = zlib.crc32(f"{job.row.name} {job.target.kind}".encode())
    chance = random.Random(seed)  # noqa: S311 - repeatable trials
    try:
        trials = job.row.run(Task(job.target, job.count, chance, _Share(tell)))
    except NotRun as reason:
        return {"not_run": str(reason)}
    except Exception as error:  # noqa: BLE001 - whatever it is, the promise is broken
        return {"wrong": 1, "count": 0, "examples": [_cut(f"raised {error!r}")]}
    return {
        "count": trials.count,
        "wrong": len(trials.wrong),
        "examples": [_cut(text) for text in trials.wrong[:EXAMPLES]],
        "note": trials.note,
    }


class _Share:
    """Reports the share that is done, each percent once."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._last = 0

    def __call__(self, share: float) -> None:
        percent = int(share * PERCENT)
        if percent > self._last:
            self._last = percent
            self._tell(share)


def _cut(text: str) -> str:
    return shortened(text, LONGEST_EXAMPLE)
