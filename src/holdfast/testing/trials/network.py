"""Requests without the token to the MCP server over HTTP are refused."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Generator
from typing import NamedTuple
from urllib.parse import urlsplit

from holdfast.testing.trials.task import NotRun, Task, Trials

DEADLINE = 30
LISTING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
LOOPBACK = "127.0.0.1"
HOSTS = (LOOPBACK, "localhost", "evil.example", "127.0.0.1.nip.io", "[::1]", "")
ORIGINS = (None, "null", "http://evil.example", "http://127.0.0.1")
METHODS = ("POST", "GET", "DELETE", "OPTIONS", "PUT")
PATHS = ("/mcp", "/", "/mcp/", "/../mcp")
TOKENS = (
    None,
    "",
    "Bearer",
    "Bearer wrong",
    "Basic {token}",
    "{token}",
    "Bearer {token}x",
)
REFUSALS = range(400, 500)
OK = 200


class Request(NamedTuple):
    """A request to the server; ``token`` is the whole header."""

    method: str
    path: str
    host: str
    origin: str | None
    token: str | None


class Server(NamedTuple):
    """The port and the token of a server that was started."""

    port: int
    token: str

    def status(self, request: Request) -> int:
        """The status of the answer, 0 if the connection is closed without one."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=DEADLINE
        )
        with contextlib.closing(connection):
            connection.putrequest(request.method, request.path, skip_host=True)
            for name, value in self._headers(request).items():
                connection.putheader(name, value)
            connection.endheaders(LISTING)
            try:
                return connection.getresponse().status
            except (http.client.HTTPException, OSError):
                return 0

    def _headers(self, request: Request) -> dict[str, str]:
        given = {
            "host": request.host,
            "origin": request.origin,
            "authorization": request.token and request.token.format(token=self.token),
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "content-length": str(len(LISTING)),
        }
        return {name: value for name, value in given.items() if value is not None}


def network(task: Task) -> Trials:
    """Ask for the tools without the token: every combination is refused."""
    if importlib.util.find_spec("mcp") is None:
        raise NotRun("needs the extra: pip install 'holdfast[mcp]'")
    matrix = list(itertools.product(METHODS, PATHS, HOSTS, ORIGINS, TOKENS))
    chosen = task.chance.sample(matrix, min(task.count, len(matrix)))
    wrong: list[str] = []
    with _serving(task.target.url("store")) as server:
        for n, cell in enumerate(chosen):
            request = Request(*cell)
            status = server.status(request)
            if status not in REFUSALS:
                wrong.append(f"{request} was answered with {status}")
            task.done(n + 1)
        right = Request(
            "POST", "/mcp", f"127.0.0.1:{server.port}", None, "Bearer {token}"
        )
        if (status := server.status(right)) != OK:
            wrong.append(f"with the token it was answered with {status}")
    return Trials(len(chosen), wrong)


@contextlib.contextmanager
def _serving(url: str) -> Generator[Server]:
    arguments = [sys.executable, "-m", "holdfast", "mcp", "--store", url, "--http"]
    variables = {n: v for n, v in os.environ.items() if not n.startswith("HOLDFAST_")}
    with subprocess.Popen(  # noqa: S603 - our own program
        arguments,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            said = ""
            while not (token := re.search(r"^token: (\S+)$", said, re.MULTILINE)):
                line = process.stderr.readline()
                if not line:
                    raise NotRun(f"the server did not start: {said}")
                said += line
            address = re.search(r"listening on (\S+)", said)
            port = urlsplit(address[1]).port if address else None
            yield Server(port or 0, token[1])
        finally:
            process.kill()
