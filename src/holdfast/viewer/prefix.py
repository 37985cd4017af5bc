"""A viewer under a path of a larger site, behind a reverse proxy."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send


class UnderPrefix:
    """An application under a path, whether a proxy takes the path away or not."""

    def __init__(self, app: ASGIApp, base: str) -> None:
        self._app, self._base = app, base

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(self._base):
            path = "/" + scope["path"].removeprefix(self._base)
            scope = {**scope, "path": path, "raw_path": path.encode()}
        await self._app(scope, receive, send)


def as_base(prefix: str) -> str:
    """A prefix as the page has it: with a slash at both ends."""
    inner = prefix.strip("/")
    return f"/{inner}/" if inner else "/"
