"""The handler of a signal saves, after each step of a call that goes on afterwards.

usage: save_in_handlers.py ADDRESS STEP

Every STEP-th step is tried, with one connection in the pool. One line of JSON: how many
calls were interrupted so, and how many messages the calls and the handlers have saved.
"""

from __future__ import annotations

import sys
from typing import Any

import holdfast
from support.children import report


def main() -> None:
    address, step = sys.argv[1], int(sys.argv[2])
    with holdfast.open(address, pool=(1, 1), busy_timeout=10) as store:
        called, handled = store.thread("called"), store.thread("handled")
        for thread in (called, handled):
            thread.save({"log": []})
        calls, is_handled = 0, True
        while is_handled:
            calls += 1
            left, is_handled = calls * step, False

            # Python runs a handler after a call of a function in C, or as one in Python
            # begins; nothing interrupts a handler here.
            def count(_frame: object, event: str, _about: Any) -> None:
                nonlocal left, is_handled
                left -= event in {"call", "c_return"}
                if left == 0 and not is_handled:
                    is_handled = True
                    handled.append(log=["x"])

            sys.setprofile(count)
            called.append(log=["x"])
            sys.setprofile(None)
        logs = [len(thread.load()["log"]) for thread in (called, handled)]
    report([calls, *logs])


if __name__ == "__main__":
    main()
