"""The agent tools as an MCP server, over standard input and output or over HTTP.

Offers the tools of `holdfast.tools`, and checkpoints as resources. Needs the
extra: ``pip install 'holdfast[mcp]'``.
"""

from __future__ import annotations

from holdfast._api.plugins import import_extra

import_extra("mcp", "an MCP server", "mcp")

from holdfast.mcp._http import Listening, http_app, serve_http  # noqa: E402 - see above
from holdfast.mcp._server import make_server  # noqa: E402
from holdfast.mcp._stdio import serve_stdio  # noqa: E402

__all__ = ["Listening", "http_app", "make_server", "serve_http", "serve_stdio"]
