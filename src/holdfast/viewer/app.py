"""The viewer as an ASGI application over an open store."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from holdfast._api.store import AsyncStore
from holdfast._http import RequestCheck
from holdfast.errors import Unstorable
from holdfast.viewer.condition import StoreFile, without_key
from holdfast.viewer.export import export_html
from holdfast.viewer.failures import Endpoint, told, unknown
from holdfast.viewer.headers import API, JSON, AllowedRequests, WithHeaders, refuse
from holdfast.viewer.live import LiveFeed
from holdfast.viewer.page import PageFiles
from holdfast.viewer.prefix import UnderPrefix, as_base
from holdfast.viewer.reading import READINGS, Reading, answer, query_of
from holdfast.viewer.steering import STEERINGS, Steering, body_of
from holdfast.views.showing import Redact, Showing

PATH = API + "1/"


class ViewerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The rights of a viewer, its addresses, and the texts that it hides.

    ``address`` is the store's, as the page shows it. ``hosts`` and ``origins`` are
    allowed besides the server's own. Changes need ``write``. ``redact`` gets each text
    before it is shown and gives it back without what must stay secret. Of an encrypted
    store that was opened without its key, only sizes are shown: ``sizes_only``.
    """

    token: str
    address: str = ""
    prefix: str = "/"
    hosts: Collection[str] = ()
    origins: Collection[str] = ()
    write: bool = False
    redact: Redact | None = None
    sizes_only: bool = False


def app(store: AsyncStore, options: ViewerOptions) -> ASGIApp:
    """An application that shows a store to browsers with the token."""
    viewer = Viewer(store, options)
    base = as_base(options.prefix)
    checked = RequestCheck(
        AllowedRequests(viewer.application()),
        token=options.token,
        hosts=options.hosts,
        origins=options.origins,
        public=lambda path: not path.startswith(API),
        refuse=refuse,
    )
    return UnderPrefix(WithHeaders(GZipMiddleware(checked)), base)


class Viewer:
    """The routes of a store."""

    def __init__(self, store: AsyncStore, options: ViewerOptions) -> None:
        self.store, self.options = store, options
        self.showing = Showing(options.redact)
        self._feed = LiveFeed(store)
        self._file = StoreFile(options.address)

    def application(self) -> ASGIApp:
        """The routes, without the checks of requests."""
        base = as_base(self.options.prefix)
        files = PageFiles(base=base, write=self.options.write)
        routes = [
            Route("/", files.index),
            Route("/app.js", files.joined),
            Route("/app.css", files.joined),
            Route("/static/{name}", files.single),
            Route("/favicon.ico", files.icon),
            Route(PATH + "live", told(self._live)),
            Route(PATH + "export", told(self._export)),
            *self._readings(),
            *(self._steerings() if self.options.write else ()),
        ]
        problems: Mapping[Any, Any] = {HTTPException: unknown}
        made = Starlette(routes=routes, exception_handlers=problems)
        made.router.redirect_slashes = False
        return made

    def _readings(self) -> list[Route]:
        return [
            Route(PATH + name, told(self._endpoint(name, reading)), methods=["GET"])
            for name, reading in READINGS.items()
        ]

    def _endpoint(self, name: str, reading: Reading) -> Endpoint:
        async def read(request: Request) -> Response:
            self._check(name)
            given = request.query_params
            texts = {key: given.getlist(key) for key in given}
            query = query_of(reading, texts)
            document = await self.store.runner.run(reading.view, query, self.showing)
            more = self._about() if name == "store" else {}
            return JSON(answer(name, {**document, **more}))

        return read

    def _check(self, name: str = "") -> None:
        """Raise if the store cannot be read."""
        self._file.check()
        if self.options.sizes_only and name != "store":
            raise without_key()

    async def _live(self, request: Request) -> Response:
        self._check()
        return await self._feed.endpoint(request)

    async def _export(self, request: Request) -> Response:
        self._check()
        threads = request.query_params.getlist("thread")
        if not threads:
            raise Unstorable("thread", "is missing; name one or several")
        text = await self.store.runner.run(export_html, threads, self.options.redact)
        headers = {"content-disposition": 'attachment; filename="threads.html"'}
        return Response(text, media_type="text/html", headers=headers)

    def _steerings(self) -> list[Route]:
        return [
            Route(PATH + name, told(self._change(name, steering)), methods=["POST"])
            for name, steering in STEERINGS.items()
        ]

    def _change(self, name: str, steering: Steering) -> Endpoint:
        async def change(request: Request) -> Response:
            body = body_of(steering, await request.body())
            document = await steering.change(self.store, body, self.showing)
            return JSON(answer(name, document))

        return change

    def _about(self) -> dict[str, Any]:
        """The facts about the store that only the server knows."""
        scheme, colon, _ = self.options.address.partition(":")
        backend = scheme if colon and len(scheme) > 1 else "sqlite"
        return {
            "address": self.options.address,
            "backend": backend,
            "write": self.options.write,
            **({"encrypted": True, "key": False} if self.options.sizes_only else {}),
        }
