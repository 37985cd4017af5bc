"""The page, its script and its style: nothing of the store is in them."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import Response

import holdfast
from holdfast.viewer import joining
from holdfast.viewer.headers import refuse

TEMPLATE = "page.html"
TYPES = {".js": "text/javascript", ".css": "text/css"}


def page(*, base: str, write: bool) -> str:
    """The page for a server."""
    folder = files("holdfast.viewer") / "templates"
    environment = Environment(autoescape=True)
    template = environment.from_string((folder / TEMPLATE).read_text("utf-8"))
    return template.render(base=base, write=write, version=holdfast.__version__)


class PageFiles:
    """Answers with the page, the joined files, and each module by itself."""

    def __init__(self, *, base: str, write: bool) -> None:
        self._base, self._write = base, write
        self._joined = {
            "app.js": (joining.script(), TYPES[".js"]),
            "app.css": (joining.style(), TYPES[".css"]),
        }

    async def index(self, request: Request) -> Response:
        """The page itself."""
        del request
        text = page(base=self._base, write=self._write)
        headers = {"cache-control": "no-cache"}
        return Response(text, media_type="text/html", headers=headers)

    async def joined(self, request: Request) -> Response:
        """All modules, or all style sheets."""
        text, kind = self._joined[request.url.path.rpartition("/")[2]]
        return _cached(request, text, kind)

    async def single(self, request: Request) -> Response:
        """One module or style sheet, for looking at it."""
        name = request.path_params["name"]
        known = {file.name: file for file in joining.static().iterdir()}
        kind = TYPES.get("." + name.rpartition(".")[2])
        if name not in known or kind is None:
            return refuse(404, f"the page has no file {name!r}")
        return _cached(request, known[name].read_text("utf-8"), kind)

    async def icon(self, request: Request) -> Response:
        """Browsers ask for it; there is none."""
        del request
        return Response(status_code=204)


def _cached(request: Request, text: str, kind: str) -> Response:
    tag = f'"{sha256(text.encode()).hexdigest()[:20]}"'
    headers = {"cache-control": "no-cache", "etag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(text, media_type=kind, headers=headers)
