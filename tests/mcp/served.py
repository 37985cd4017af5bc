"""Real servers, started as people start them, and the official client to call them."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from holdfast.cli import main

HOLDFAST = (sys.executable, "-m", "holdfast")
ERAS = ("auto", "legacy", "2026-07-28")
DEADLINE = 120
KEPT = ("PATH", "HOME", "PYTHONPATH")


def environment(**more):
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {**kept, "PYTHONUTF8": "1", **more}


def command(store, *arguments):
    return [*HOLDFAST, "mcp", "--store", str(store), *arguments]


def refused(capsys, store, *arguments):
    """How a server that does not start ends, and what it says; in this process."""
    status = main(command(store, *arguments)[len(HOLDFAST) :])
    out, err = capsys.readouterr()
    assert out == ""
    return status, err


# --- the official client --------------------------------------------------------------


class Remote:
    """A client that is connected, for tests that wait for what they ask."""

    def __init__(self, portal, client):
        self.portal, self.client = portal, client

    def do(self, operation, *args):
        return self.portal.call(operation, *args)

    def tools(self):
        return self.do(self.client.list_tools).tools

    def called(self, name, /, **arguments):
        return self.do(self.client.call_tool, name, arguments)

    def result(self, name, /, **arguments):
        """The structured result of a call that works, which the text must repeat."""
        found = self.called(name, **arguments)
        assert not found.is_error, found.content
        assert json.loads(found.content[0].text) == found.structured_content
        return found.structured_content

    def error(self, name, /, **arguments):
        """The error of a call that is refused, and the text of it."""
        found = self.called(name, **arguments)
        assert found.is_error
        return found.structured_content["error"], found.content[0].text

    def read(self, uri):
        [contents] = self.do(self.client.read_resource, uri).contents
        assert (contents.uri, contents.mime_type) == (uri, "application/json")
        return json.loads(contents.text)


@contextlib.contextmanager
def connected(client):
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(client) as entered,
    ):
        yield Remote(portal, entered)


@contextlib.contextmanager
def over_stdio(store, *arguments, era="auto"):
    """A client of a server of its own, which must have nothing to say beside."""
    program, *rest = command(store, *arguments)
    how = StdioServerParameters(command=program, args=rest, env=environment())
    with tempfile.TemporaryFile("w+") as log:
        with connected(Client(stdio_client(how, errlog=log), mode=era)) as remote:
            yield remote
        log.seek(0)
        assert log.read() == ""


@contextlib.asynccontextmanager
async def _authorized(served, era):
    headers = {"Authorization": f"Bearer {served.token}"}
    async with httpx2.AsyncClient(headers=headers) as http_client:
        transport = streamable_http_client(served.url, http_client=http_client)
        async with Client(transport, mode=era) as client:
            yield client


def over_http(served, era="auto"):
    """A client of a server that several can have."""
    return connected(_authorized(served, era))


# --- a server for several -------------------------------------------------------------


@dataclass
class Served:
    """A server over HTTP: where it is, what lets one in, and what it said."""

    process: subprocess.Popen
    url: str
    token: str
    said: list[str]

    @property
    def port(self):
        return urlsplit(self.url).port

    def answer(self, method="POST", path="/mcp", body=None, **headers):
        """The answer to a plain request, with the token unless a header is given."""
        given = {"authorization": f"Bearer {self.token}"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, DEADLINE)
        with contextlib.closing(connection):
            connection.putrequest(method, path, skip_host="host" in given)
            for name, value in given.items():
                if value is not None:
                    connection.putheader(name, value)
            if body is not None:
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), dict(answer.getheaders())


@contextlib.contextmanager
def serving(store, *arguments, **env):
    """A server over HTTP that is killed if a test leaves it running."""
    with subprocess.Popen(
        command(store, "--http", *arguments),
        env=environment(**env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield _announced(process, env.get("HOLDFAST_TOKEN"))
        finally:
            process.kill()


def _announced(process, token):
    url = process.stderr.readline().removeprefix("listening on ").strip()
    said = [url]
    while token is None:
        said.append(process.stderr.readline())
        assert said[-1], process.communicate()
        if said[-1].startswith("token: "):
            token = said[-1].removeprefix("token: ").strip()
    return Served(process, url, token, said)


# --- one that is spoken to by hand ----------------------------------------------------


class Plain:
    """A server over standard input and output, with nothing between it and the test."""

    def __init__(self, store, *arguments):
        self.process = subprocess.Popen(
            command(store, *arguments),
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._asked = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def send(self, **message):
        line = json.dumps({"jsonrpc": "2.0", **message})
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, method, **params):
        self._asked += 1
        self.send(id=self._asked, method=method, params=params)
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == self._asked
        return answer

    def greet(self, version="2025-11-25"):
        about = {"name": "test", "version": "1"}
        answer = self.ask(
            "initialize", protocolVersion=version, capabilities={}, clientInfo=about
        )
        self.send(method="notifications/initialized")
        return answer["result"]

    def call(self, tool, **arguments):
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def ended(self):
        """How it ended, and what it said that was not asked for."""
        status = self.process.wait(DEADLINE)
        return status, self.process.stdout.read(), self.process.stderr.read()
