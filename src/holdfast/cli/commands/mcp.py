"""`holdfast mcp`: the agent tools for any client that speaks MCP."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import TypeAlias

import click
import msgspec

import holdfast
from holdfast._api.open import Opening
from holdfast.cli import _command
from holdfast.cli._given_key import given_key
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import flag, option
from holdfast.cli._server_address import (
    LOOPBACK,
    host_option,
    new_token,
    port_option,
    warn_if_exposed,
)
from holdfast.cli._store_address import given_scope
from holdfast.errors import NotFound, Unstorable
from holdfast.tools._toolset import select

Tools: TypeAlias = Sequence[str] | None

VARIABLE = "HOLDFAST_TOKEN"


class HttpOptions(msgspec.Struct, frozen=True):
    """The options that need ``--http``."""

    host: str | None
    port: int | None
    token_file: str | None
    allow_host: tuple[str, ...]
    resumable: bool


NOTHING_ASKED = HttpOptions(None, None, None, (), resumable=False)


@_command.command("mcp")
@flag("--http", help="Serve several clients over HTTP.")
@host_option
@port_option(default=None)
@option(
    "--token-file",
    "FILE",
    f"File with the token that clients must send; or set {VARIABLE}.",
    type=click.Path(exists=True, dir_okay=False),
)
@option(
    "--allow-host",
    "NAME",
    "Another host name that clients may use for the server.",
    multiple=True,
)
@flag("--resumable", help="Keep sessions; clients can resume lost connections.")
@option("--tools", "NAMES", "Offer only these tools, such as agent_load,agent_list.")
def command(
    cli: Invocation,
    *,
    http: bool,
    tools: str | None,
    **http_options: str | int | bool | tuple[str, ...] | None,
) -> None:
    """Serve the agent tools to a client that speaks MCP.

    Without --http, the client starts this command and talks to it over standard input
    and output. With --http, clients must send a token: a new one is created and shown
    if none is given.

    A store that --store or HOLDFAST_STORE names is created if it does not exist.
    With --read-only, only the twelve tools that change nothing are offered.
    """
    asked = msgspec.convert(http_options, HttpOptions)
    if not http and asked != NOTHING_ASKED:
        text = "--host, --port, --token-file, --allow-host and --resumable need --http"
        raise click.UsageError(text)
    if asked.resumable and cli.options.read_only:
        text = "--resumable stores events, which --read-only forbids; leave one out"
        raise click.UsageError(text)
    names = None if tools is None else _names(tools)
    token = _given_token(cli, asked) if http else None
    serving = _over_http(cli, asked, token, names) if http else _over_stdio(cli, names)
    if asyncio.run(serving) == signal.SIGINT:
        raise KeyboardInterrupt


async def _over_stdio(cli: Invocation, tools: Tools) -> int | None:
    from holdfast.mcp import serve_stdio  # noqa: PLC0415 - an extra

    if sys.stdin.isatty():
        cli.out.note(
            "this command expects JSON-RPC on its input; an MCP client should start it"
        )
    read_only = cli.options.read_only
    async with _opening(cli) as store:
        return await serve_stdio(store, read_only=read_only, tools=tools)


async def _over_http(
    cli: Invocation, asked: HttpOptions, token: str | None, tools: Tools
) -> int | None:
    from holdfast.mcp import Listening, serve_http  # noqa: PLC0415 - an extra

    listening = Listening(
        token=new_token() if token is None else token,
        host=asked.host or LOOPBACK,
        port=asked.port or 0,
        hosts=asked.allow_host,
    )

    def ready(url: str) -> None:
        _announce(cli, url, token=listening.token if token is None else None)
        warn_if_exposed(cli.out, listening.host, url)

    read_only = cli.options.read_only
    async with _opening(cli) as store:
        return await serve_http(
            store,
            listening,
            read_only=read_only,
            tools=tools,
            resumable=asked.resumable,
            ready=ready,
        )


def _names(tools: str) -> Sequence[str]:
    """The names of tools, checked before a store is created."""
    names = [name.strip() for name in tools.split(",")]
    try:
        select(only=names, read_only=False, agent=None, owner=None)
    except Unstorable as error:
        raise click.UsageError(f"--tools: {error.reason}") from error
    return names


def _opening(cli: Invocation) -> Opening:
    options = cli.options
    if options.verbose:
        logging.basicConfig(level=logging.INFO)
    return holdfast.open_async(
        cli.address,
        read_only=options.read_only,
        busy_timeout=options.wait,
        key=given_key(),
        scope=given_scope(options),
    )


def _given_token(cli: Invocation, asked: HttpOptions) -> str | None:
    """The token that clients must send, ``None`` if one has to be created."""
    token = os.environ.get(VARIABLE) or None
    if asked.token_file is not None:
        token = _read(asked.token_file)
    if token is None and cli.options.quiet and not cli.out.is_json:
        text = f"--quiet would hide the token; give one with --token-file or {VARIABLE}"
        raise click.UsageError(text)
    return token


def _read(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        text = f"the token cannot be read from {file}: {error}; check --token-file"
        raise NotFound(text) from error


def _announce(cli: Invocation, url: str, *, token: str | None) -> None:
    """Print the URL, and the token if it is new."""
    out = cli.out
    if out.is_json:
        out.document("mcp/1", {"url": url, "token": token})
    out.note(f"listening on {url}")
    if token is not None:
        out.note(f"token: {token}")
        out.note(f"clients send it as 'Authorization: Bearer ...'; {VARIABLE} sets one")
