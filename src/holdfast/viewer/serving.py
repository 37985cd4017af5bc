"""Serving the viewer until a signal comes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from holdfast._api.store import AsyncStore
from holdfast._http import bound, bound_to_file, bracketed, serve
from holdfast.viewer.app import ViewerOptions, app
from holdfast.viewer.prefix import as_base


class ListenOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a server: host and port, or the path of a Unix socket.

    With ``port`` 0 the system chooses a free one.
    """

    host: str = "127.0.0.1"
    port: int = 0
    socket: str | None = None


async def serve_viewer(
    store: AsyncStore,
    listen: ListenOptions,
    options: ViewerOptions,
    *,
    ready: Callable[[str], None] | None = None,
) -> int | None:
    """Serve a viewer until a signal comes; gives the signal, if one came.

    ``ready`` is called with the address of the page, which has the token in its
    fragment: browsers do not send it, and the page takes it out of the address.
    """
    options = replace(options, hosts={listen.host, *options.hosts})
    application = app(store, options)

    def announce(origin: str) -> None:
        if ready is not None:
            ready(f"{origin}{as_base(options.prefix)}#token={options.token}")

    if listen.socket is not None:
        with bound_to_file(listen.socket) as listener:
            return await serve(
                application, listener, lambda: announce("http://localhost")
            )
    with bound(listen.host, listen.port) as listener:
        port = listener.getsockname()[1]
        origin = f"http://{bracketed(listen.host)}:{port}"
        return await serve(application, listener, lambda: announce(origin))
