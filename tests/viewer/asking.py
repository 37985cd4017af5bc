"""A viewer on a real socket, and requests to it as any program makes them."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import threading
from collections.abc import Iterator
from urllib.parse import urlencode, urlsplit

import msgspec

import holdfast
from holdfast.viewer import ListenOptions, ViewerOptions, serve_viewer
from inner.viewer import open_without_key

TOKEN = "the-token-of-the-tests-of-requests"


class Answered(msgspec.Struct, frozen=True):
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self):
        """Its JSON."""
        return json.loads(self.body)

    @property
    def code(self):
        """The code of an error."""
        return self.document["error"]["code"]


class Asked(msgspec.Struct, frozen=True):
    """A viewer that is served."""

    host: str
    port: int

    def get(self, route, /, **params):
        """The document of a route that must succeed."""
        query = urlencode(params, doseq=True)
        answered = self.send("GET", f"/api/1/{route}?{query}")
        assert answered.status == 200, answered.body
        assert answered.document["schema"] == f"holdfast.viewer.{route}/1"
        return answered.document

    def post(self, route, /, **body):
        """The answer to a change."""
        return self.send("POST", f"/api/1/{route}", json=body)

    def send(self, method, path, headers=None, body=None, json=None):
        """Any request, with the token unless the headers say otherwise."""
        given = {"Authorization": f"Bearer {TOKEN}"}
        if json is not None:
            body, given["Content-Type"] = msgspec.json.encode(json), "application/json"
        given |= headers or {}
        sent = {name: value for name, value in given.items() if value is not None}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        with contextlib.closing(connection):
            connection.request(method, path, body, sent)
            found = connection.getresponse()
            headers = {name.lower(): value for name, value in found.getheaders()}
            return Answered(found.status, headers, found.read())


@contextlib.contextmanager
def asked(path, *, write=False, opening=None, **options) -> Iterator[Asked]:
    """Serve the store at a path while the block runs."""
    with serving(path, write=write, opening=opening, **options) as url:
        where = urlsplit(url)
        yield Asked(where.hostname, where.port)


async def opened(path, given, viewer):
    if viewer.sizes_only:
        return await open_without_key(path, busy_timeout=1)
    return await holdfast.open_async(path, **given)


@contextlib.contextmanager
def serving(path, *, write=False, opening=None, socket=None, **options):
    """Serve a store; gives the address of the page."""
    found: list[str] = []
    ready = threading.Event()
    ending: list[tuple[asyncio.AbstractEventLoop, asyncio.Task]] = []

    def announce(url):
        found.append(url)
        ready.set()

    async def serve():
        viewer = ViewerOptions(token=TOKEN, address=path, write=write, **options)
        given = {"read_only": not write, **(opening or {})}
        async with await opened(path, given, viewer) as store:
            listen = ListenOptions(socket=socket)
            serving = serve_viewer(store, listen, viewer, ready=announce)
            task = asyncio.ensure_future(serving)
            ending.append((asyncio.get_running_loop(), task))
            with contextlib.suppress(asyncio.CancelledError):
                await task

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(120)
    try:
        yield found[0]
    finally:
        loop, task = ending[0]
        loop.call_soon_threadsafe(task.cancel)
        thread.join(120)
        assert not thread.is_alive()
