"""Attempts with random input, in a child that may not take too much."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import multiprocessing.sharedctypes
import random
import resource
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError
from support.effort import FUZZ_SECONDS, seed_of

__all__ = ["fuzz", "mutate"]

SECONDS = 5.0
BYTES = 1 << 30


def fuzz(
    attempt: Callable[[random.Random, Path], object],
    folder: Path,
    *,
    seconds: float = FUZZ_SECONDS,
    first: int | None = None,
) -> int:
    """Make attempts for `seconds`, each with a seed of its own; how many there were.

    An attempt gets its source of chance and `folder`, which is the same for all; it
    opens the stores it needs, because none may be used across a fork. It may end with
    an error of Holdfast. Another error, more than five seconds or more than a gigabyte
    fail, with the seed: `fuzz(attempt, folder, first=seed, seconds=0)` makes that
    attempt alone.
    """
    start = seed_of(folder.name) if first is None else first
    context = multiprocessing.get_context("fork")
    seed = multiprocessing.sharedctypes.RawValue(ctypes.c_longlong, start)
    child = context.Process(
        target=attempts, args=(attempt, folder, seed, time.monotonic() + seconds)
    )
    child.start()
    child.join()
    if child.exitcode == -signal.SIGALRM:
        raise AssertionError(f"seed {seed.value}: takes more than {SECONDS:g} seconds")
    if child.exitcode:
        raise AssertionError(f"seed {seed.value}: see the error above")
    return seed.value - start


def attempts(
    attempt: Callable[[random.Random, Path], object],
    folder: Path,
    seed: ctypes.c_longlong,
    end: float,
) -> None:
    """The child: the system itself ends an attempt that takes too long or too much."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    allowed = data_of_this_process() + BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))
    while True:
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        with contextlib.suppress(HoldfastError):
            attempt(random.Random(seed.value), folder)
        signal.setitimer(signal.ITIMER_REAL, 0)
        seed.value += 1
        if time.monotonic() >= end:
            return


def data_of_this_process() -> int:
    """The bytes that RLIMIT_DATA counts: private memory that can be written."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the system does not say how much memory a process has")


def mutate(chance: random.Random, body: Any, values: Sequence[Any]) -> None:
    """Change one thing somewhere in dicts and lists, often to one of some values."""
    while True:
        keys = sorted(body) if isinstance(body, dict) else range(len(body))
        if not keys:
            return
        key = chance.choice(keys)
        inner = body[key]
        if not isinstance(inner, dict | list) or chance.random() < 0.2:
            break
        body = inner
    how = chance.random()
    if how < 0.2:
        del body[key]
    elif how < 0.4 and isinstance(inner, int):
        body[key] = inner + chance.choice((-1, 1, 2, 100))
    else:
        body[key] = copy.deepcopy(chance.choice(values))
