"""A viewer over a real store, on loopback, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import uvicorn

import holdfast
from holdfast.viewer import ViewerOptions, app
from inner.viewer import SignalFreeServer, bound

TOKEN = "a-token-for-the-tests-of-the-viewer"


@dataclass(frozen=True)
class Served:
    """Where a viewer is, and how it is reached."""

    origin: str
    path: str

    def page(self, **params: str) -> str:
        """The address of the page, with the token."""
        query = f"?{urlencode(params)}" if params else ""
        return f"{self.origin}/{query}#token={TOKEN}"


@contextmanager
def served(
    path: str, *, port: int = 0, write: bool = False, prefix: str = "", **options: Any
) -> Iterator[Served]:
    """Serve the store at ``path`` until the block ends."""
    with bound("127.0.0.1", port) as listener:
        origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
        started: list[SignalFreeServer] = []
        ready = threading.Event()

        async def run() -> None:
            async with holdfast.open_async(path, **options) as store:
                viewer = app(
                    store,
                    ViewerOptions(
                        token=TOKEN,
                        address="agents.db",
                        hosts={"127.0.0.1"},
                        write=write,
                        prefix=prefix,
                    ),
                )
                config = uvicorn.Config(
                    viewer,
                    lifespan="on",
                    ws="none",
                    log_config=None,
                    access_log=False,
                    timeout_graceful_shutdown=1,
                )
                started.append(SignalFreeServer(config))
                ready.set()
                await started[0].serve(sockets=[listener])

        thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
        thread.start()
        assert ready.wait(120), "the viewer did not start"
        try:
            yield Served(origin + prefix, path)
        finally:
            started[0].end()
            thread.join(120)
