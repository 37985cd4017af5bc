"""The handler of a signal ends calls, one after each step of theirs; the store goes on.

usage: interrupt_calls.py ADDRESS STEP [LEAST]

Every STEP-th step is tried, with LEAST connections that stay in a pool. One line of
JSON: how many calls were ended so, how many seconds the longest call after one took,
and whether a fork could save.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import holdfast
from holdfast.operations import OpenOptions
from support.children import report


class Alarm(BaseException):
    """What the handler raises."""


def is_ended(call: Callable[[], object], steps: int) -> bool:
    """Whether a call was still under way after so many steps, and was ended there.

    Python runs a handler after a call of a function in C, or as one in Python begins.
    """
    left = steps

    def step(_frame: object, event: str, _about: Any) -> None:
        nonlocal left
        left -= event in {"call", "c_return"}
        if left == 0:
            raise Alarm

    try:
        sys.setprofile(step)
        call()
    except Alarm:
        return True
    finally:
        sys.setprofile(None)
    return False


def main() -> None:
    address, step, *least = sys.argv[1], *map(int, sys.argv[2:])
    options = OpenOptions(busy_timeout=2)
    if least:
        options["pool"] = (least[0], 4)
    # A connection that is dropped where it is, and errors in `__del__`, are told.
    warnings.simplefilter("ignore")
    logging.disable()
    sys.unraisablehook = lambda _: None
    with holdfast.open(address, **options) as store:
        thread = store.thread("a")
        thread.save({"log": []})
        ended, longest = 0, 0.0
        while is_ended(lambda: thread.append(log=["x"]), 1 + ended * step):
            ended += 1
            begun = time.monotonic()
            thread.append(log=["y"])
            longest = max(longest, time.monotonic() - begun)
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                thread.append(log=["z"])
                os._exit(0)
            os._exit(1)
        forked = os.waitpid(child, 0)[1] == 0
    report([ended, longest, forked])


if __name__ == "__main__":
    main()
