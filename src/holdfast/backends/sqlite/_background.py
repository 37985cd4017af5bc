"""Work that goes on in a thread of its own while its caller does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

# Gets a function to call as soon as the caller can go on; until then the caller waits.
Work: TypeAlias = Callable[[Callable[[], None]], object]


class Background:
    """Work in a thread that ends with it; `wait` raises what the work raised.

    Two threads that run Python hinder each other: the one that lets go of the
    interpreter, as for every statement, gets it back 5 ms later. So the caller goes on
    only when what is left of the work needs no Python for long.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._can_go_on = threading.Event()
        self._thread = threading.Thread(target=self._run)
        try:
            self._thread.start()
        except RuntimeError:  # there cannot be another thread
            self._run()
        self._can_go_on.wait()

    def _run(self) -> None:
        try:
            self._work(self._can_go_on.set)
        except BaseException as error:  # noqa: BLE001 - `wait` raises it
            self._error = error
        finally:
            self._can_go_on.set()

    def wait(self) -> None:
        """Wait for the end."""
        if self._thread.ident is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
