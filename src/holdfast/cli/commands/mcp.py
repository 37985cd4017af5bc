"""`holdfast mcp`: the agent tools for any client that speaks MCP."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import click
import msgspec

import holdfast
from holdfast.cli import _command
from holdfast.cli._session import Session
from holdfast.errors import NotFound, Unstorable
from holdfast.mcp._auth import is_loopback

if TYPE_CHECKING:
    from holdfast._api.open import Opening

Tools: TypeAlias = Sequence[str] | None

VARIABLE = "HOLDFAST_TOKEN"
LOOPBACK = "127.0.0.1"
# 192 bits.
TOKEN_BYTES = 24

EXPOSED = (
    "warning: {} can be reached from other machines, and nothing is encrypted; put a"
    " proxy with TLS in front of it, or use a tunnel to 127.0.0.1"
)


class Place(msgspec.Struct, frozen=True):
    """Where to listen, as it was asked for."""

    host: str | None
    port: int | None
    token_file: str | None
    allow_host: tuple[str, ...]

    @property
    def is_given(self) -> bool:
        """Whether anything was asked for that makes sense over HTTP only."""
        given = (self.host, self.port, self.token_file)
        return bool(self.allow_host) or any(value is not None for value in given)


@_command.command("mcp")
@click.option("--http", is_flag=True, help="Serve over HTTP, to several clients.")
@click.option("--host", metavar="NAME", help=f"Where to listen, {LOOPBACK} by default.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="NUMBER",
    help="Which port, a free one by default.",
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help=f"Where the token is that clients need; also in {VARIABLE}.",
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="Another name by which clients may call it.",
)
@click.option("--tools", metavar="NAMES", help="Offer only these, such as a,b.")
def command(
    session: Session,
    *,
    http: bool,
    tools: str | None,
    **place: str | int | tuple[str, ...] | None,
) -> None:
    """Serve the agent tools to a client that speaks MCP.

    Without --http the client starts this command and speaks with it over standard
    input and output. With it, a token is needed to speak with it: one is made and shown
    if none is given.

    A store that was named with --store or HOLDFAST_STORE is made if it is not there.
    With --read-only, only the seven tools that change nothing are offered.
    """
    asked = msgspec.convert(place, Place)
    if asked.is_given and not http:
        text = "--host, --port, --token-file and --allow-host need --http"
        raise click.UsageError(text)
    names = None if tools is None else _names(tools)
    token = _given_token(session, asked) if http else None
    # Imported here, as more below: they would slow down every list of commands.
    import asyncio  # noqa: PLC0415

    serving = (
        _over_http(session, asked, token, names)
        if http
        else _over_stdio(session, names)
    )
    if asyncio.run(serving) == signal.SIGINT:
        raise KeyboardInterrupt


async def _over_stdio(session: Session, tools: Tools) -> int | None:
    from holdfast.mcp import serve_stdio  # noqa: PLC0415

    if sys.stdin.isatty():
        session.out.note("a client should have started this: it speaks JSON-RPC here")
    read_only = session.settings.read_only
    async with _opening(session) as store:
        return await serve_stdio(store, read_only=read_only, tools=tools)


async def _over_http(
    session: Session, asked: Place, token: str | None, tools: Tools
) -> int | None:
    import secrets  # noqa: PLC0415

    from holdfast.mcp import Listening, serve_http  # noqa: PLC0415

    listening = Listening(
        token=secrets.token_urlsafe(TOKEN_BYTES) if token is None else token,
        host=asked.host or LOOPBACK,
        port=asked.port or 0,
        hosts=asked.allow_host,
    )

    def ready(url: str) -> None:
        _announce(session, url, token=listening.token if token is None else None)
        if not is_loopback(listening.host):
            session.out.note(EXPOSED.format(url))

    read_only = session.settings.read_only
    async with _opening(session) as store:
        return await serve_http(
            store, listening, read_only=read_only, tools=tools, ready=ready
        )


def _names(tools: str) -> Sequence[str]:
    """The names of tools that there are, before anything is made for them."""
    from holdfast.tools._toolset import select  # noqa: PLC0415

    names = [name.strip() for name in tools.split(",")]
    try:
        select(only=names, read_only=False, agent=None, owner=None)
    except Unstorable as error:
        raise click.UsageError(f"--tools: {error.reason}") from error
    return names


def _opening(session: Session) -> Opening:
    settings = session.settings
    if settings.verbose:
        import logging  # noqa: PLC0415

        logging.basicConfig(level=logging.INFO)
    return holdfast.open_async(
        session.address, read_only=settings.read_only, busy_timeout=settings.wait
    )


def _given_token(session: Session, asked: Place) -> str | None:
    """The token that clients shall send, ``None`` if one has to be made."""
    token = os.environ.get(VARIABLE) or None
    if asked.token_file is not None:
        token = _read(asked.token_file)
    if token is None and session.settings.quiet and not session.out.is_json:
        text = f"--quiet would hide the token; give one with --token-file or {VARIABLE}"
        raise click.UsageError(text)
    return token


def _read(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        text = f"the token cannot be read from {file}: {error}; see --token-file"
        raise NotFound(text) from error


def _announce(session: Session, url: str, *, token: str | None) -> None:
    """Tell where it listens, and with which token if that is new."""
    out = session.out
    if out.is_json:
        out.document("mcp/1", {"url": url, "token": token})
    out.note(f"listening on {url}")
    if token is not None:
        out.note(f"token: {token}")
        out.note(f"clients send it as 'Authorization: Bearer ...'; {VARIABLE} sets one")
