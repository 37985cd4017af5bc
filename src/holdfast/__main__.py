"""`holdfast` and `python -m holdfast`: the command line as a process of its own."""

import atexit
import gc
import os
import sys

from holdfast._values import lazy

# A start makes many objects that stay, and to look for garbage among them takes a
# twentieth of it. Servers still collect, only less often.
OBJECTS_BEFORE_COLLECTION = 50_000


def start() -> None:
    """Run the command line of this process, and end the process with its status."""
    gc.set_threshold(OBJECTS_BEFORE_COLLECTION)
    if "selftest" not in sys.argv:  # it forks beside threads, see `lazy`
        lazy.load_lazily()
    from holdfast.cli import main  # noqa: PLC0415 - it has to know that

    status = main()
    threading = sys.modules.get("threading")
    if threading is not None and threading.active_count() > 1:
        sys.exit(status)
    _end(status)


def _end(status: int) -> None:
    """End without taking every module apart, a tenth of what a short command takes."""
    # What the standard library calls before `_exit`.
    atexit._run_exitfuncs()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(status)  # Python tells what could not be written
    os._exit(status)


if __name__ == "__main__":
    start()
