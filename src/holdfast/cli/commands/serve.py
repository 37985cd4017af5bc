"""`holdfast serve`: the viewer in a browser."""

from __future__ import annotations

import asyncio
import atexit
import shutil
import signal
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

import holdfast
from holdfast._api.address import shown_address
from holdfast._api.open import Opening
from holdfast.cli import _command
from holdfast.cli._given_key import given_key
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import flag, option, redactor
from holdfast.cli._server_address import (
    LOOPBACK,
    host_option,
    new_token,
    port_option,
    warn_if_exposed,
)
from holdfast.cli._store_address import must_exist
from holdfast.errors import Unsupported

if TYPE_CHECKING:  # an extra
    from holdfast.viewer import ListenOptions, ViewerOptions

PAGE = '<!doctype html><meta http-equiv="refresh" content="0; url={}">'


class ServeOptions(msgspec.Struct, frozen=True):
    """The options of the command."""

    host: str | None
    port: int
    socket: str | None
    prefix: str
    allow_host: tuple[str, ...]
    allow_origin: tuple[str, ...]
    redact: tuple[str, ...]
    write: bool
    no_open: bool


@_command.command("serve")
@host_option
@port_option(default=0)
@option("--socket", "PATH", "Listen on a Unix socket instead.")
@option("--prefix", "PATH", "The path under which a proxy serves it.", default="/")
@option(
    "--allow-host",
    "NAME",
    "Another host name that browsers may use for the server.",
    multiple=True,
)
@option(
    "--allow-origin",
    "ORIGIN",
    "The origin of other web pages that may use the server.",
    multiple=True,
)
@option(
    "--redact",
    "PATTERN",
    "Show [redacted] instead of what matches this regular expression.",
    multiple=True,
)
@flag("--write", help="Allow to fork, label, tag, rewind and resolve.")
@flag("--no-open", help="Do not open a browser.")
def command(cli: Invocation, **given: object) -> None:
    """Look at the store in a browser.

    Prints the address with a token that the page needs, and opens it. Nothing can be
    changed unless --write is given. Only programs on this machine can reach the server
    unless --host is given.
    """
    asked = msgspec.convert(given, ServeOptions)
    if asked.socket is not None and (asked.host is not None or asked.port):
        raise click.UsageError("--socket is an address of its own; leave --host out")
    if asked.write and cli.options.read_only:
        text = "--write changes the store; leave --read-only out"
        raise Unsupported(text, code="read_only")
    redact = redactor(asked.redact)
    if asyncio.run(_serve(cli, asked, redact)) == signal.SIGINT:
        raise KeyboardInterrupt


async def _serve(
    cli: Invocation, asked: ServeOptions, redact: Callable[[str], str] | None
) -> int | None:
    from holdfast.viewer import serve_viewer  # noqa: PLC0415 - an extra
    from holdfast.viewer.condition import KEY_NEEDED, open_without_key  # noqa: PLC0415

    listen, options = _settings(cli, asked, redact)

    def ready(url: str) -> None:
        _announce(cli, asked, url)

    try:
        store = await _opening(cli, write=asked.write)
    except Unsupported as error:
        if error.code != KEY_NEEDED:
            raise
        cli.out.note(f"warning: {error}")
        store = await open_without_key(cli.address, busy_timeout=cli.options.wait)
        options = msgspec.structs.replace(options, sizes_only=True, write=False)
    async with store:
        return await serve_viewer(store, listen, options, ready=ready)


def _settings(
    cli: Invocation, asked: ServeOptions, redact: Callable[[str], str] | None
) -> tuple[ListenOptions, ViewerOptions]:
    from holdfast.viewer import ListenOptions, ViewerOptions  # noqa: PLC0415 - an extra

    host = asked.host or LOOPBACK
    listen = ListenOptions(host=host, port=asked.port, socket=asked.socket)
    options = ViewerOptions(
        token=new_token(),
        address=shown_address(cli.address),
        prefix=asked.prefix,
        hosts=asked.allow_host,
        origins=asked.allow_origin,
        write=asked.write,
        redact=redact,
    )
    return listen, options


def _opening(cli: Invocation, *, write: bool) -> Opening:
    address = cli.address
    must_exist(address)
    return holdfast.open_async(
        address, read_only=not write, busy_timeout=cli.options.wait, key=given_key()
    )


def _announce(cli: Invocation, asked: ServeOptions, url: str) -> None:
    """Print the address of the page, and open it."""
    out = cli.out
    if out.is_json:
        out.document("serve/1", {"url": url, "write": asked.write})
    elif cli.options.quiet:
        click.echo(url)
    else:
        out.note(f"the viewer is at {url}")
        out.note("Ctrl-C stops it")
    if asked.host is not None:
        warn_if_exposed(out, asked.host, url.partition("#")[0])
    if not asked.no_open and asked.socket is None:
        _open_browser(url)


def _open_browser(url: str) -> None:
    """Open a page by way of a file that only this user can read.

    Other users of the machine see the arguments of all programs: the address, which has
    the token, must not be one. The file is removed when this program ends.
    """
    folder = tempfile.mkdtemp(prefix="holdfast-viewer-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = Path(folder, "viewer.html")
    file.touch(mode=0o600)
    file.write_text(PAGE.format(escape(url, quote=True)), encoding="utf-8")
    # A browser in the terminal does not return before it is closed.
    opening = threading.Thread(target=webbrowser.open, args=(file.as_uri(),))
    opening.daemon = True
    opening.start()
