"""The address on which `serve` and `mcp --http` listen, and its token."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from ipaddress import ip_address

import click

from holdfast.cli._options import F, option
from holdfast.cli.terminal.output import Output

LOOPBACK = "127.0.0.1"
# 192 bits.
TOKEN_BYTES = 24
EXPOSED = (
    "warning: {} can be reached from other machines, and nothing is encrypted; put a"
    " proxy with TLS in front of it, or use a tunnel to 127.0.0.1"
)


def host_option(function: F) -> F:
    """``--host``: the address to listen on."""
    text = f"Address to listen on, {LOOPBACK} by default."
    return option("--host", "NAME", text)(function)


def port_option(default: int | None) -> Callable[[F], F]:
    """``--port``: a free one if the user does not say."""
    text = "Port to listen on, a free one by default."
    return option(
        "--port", "NUMBER", text, type=click.IntRange(0, 65_535), default=default
    )


def new_token() -> str:
    """A secret that clients must send."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def warn_if_exposed(out: Output, host: str, url: str) -> None:
    """Print a warning if other machines can reach a server."""
    try:
        named = ip_address(host.removeprefix("[").removesuffix("]"))
        is_loopback = named.is_loopback
    except ValueError:
        is_loopback = host.lower() == "localhost"
    if not is_loopback:
        out.note(EXPOSED.format(url))
