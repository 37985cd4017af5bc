"""`holdfast` and `python -m holdfast`: the command line as a process of its own."""

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

# A start makes many objects that stay, and to look for garbage among them takes a
# twentieth of it. Servers still collect, only less often.
OBJECTS_BEFORE_COLLECTION = 50_000

# In earlier ones, threads that use a module at the same time could see half of it.
PYTHON = sys.version_info[:3]
SAFE_WITH_THREADS = PYTHON >= (3, 11, 9) and not (3, 12) <= PYTHON < (3, 12, 3)


class Deferring:
    """A finder of our modules that loads each when it is first used.

    A command uses half of what it imports, so it starts in two thirds of the time.
    """

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of ours and defer its loading; packages are loaded at once."""
        if not name.startswith("holdfast."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and spec.loader and spec.submodule_search_locations is None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def start() -> None:
    """Run the command line of this process, and end the process with its status."""
    gc.set_threshold(OBJECTS_BEFORE_COLLECTION)
    # The selftest forks beside threads, and a child cannot wait for another's loading.
    if SAFE_WITH_THREADS and "selftest" not in sys.argv:
        sys.meta_path.insert(0, Deferring)
    from holdfast.cli import main  # noqa: PLC0415 - after the finder is there

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
