"""A server with one tool that counts, over HTTP, and what a plain client does there."""

import contextlib
import http.client
import json
import socket
import threading
import time

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

VERSION = "2025-11-25"
HEADERS = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": VERSION,
}
DEADLINE = 120


class Counting(MCPServer):
    """Tells every step of a count; ``gate`` holds it after the first."""

    def __init__(self):
        super().__init__("counting")
        self.gate = threading.Event()
        self.add_tool(self.count, name="count")

    async def count(self, to: int, ctx: Context, lose: bool = False) -> str:
        """Count, and lose the connection after the first number if that is asked."""
        from anyio import to_thread

        await ctx.report_progress(1, to, "1")
        if lose:
            await ctx.close_sse_stream()
        await to_thread.run_sync(self.gate.wait, DEADLINE)
        for n in range(2, to + 1):
            await ctx.report_progress(n, to, str(n))
        return f"counted to {to}"


@contextlib.contextmanager
def serving(events, server):
    """The port of a server that runs in a thread."""
    app = events.app(server, retry_interval=50)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, args=[[listener]])
    thread.start()
    deadline = time.monotonic() + DEADLINE
    while not running.started and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield listener.getsockname()[1]
    finally:
        server.gate.set()
        running.should_exit = True
        thread.join()
        listener.close()


class Session:
    """A client that speaks the protocol itself, and loses connections when asked."""

    def __init__(self, port, **headers):
        self.port, self.headers = port, HEADERS | headers
        hello = {
            "protocolVersion": VERSION,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        with self.post("initialize", hello, id_=0) as answer:
            self.headers["mcp-session-id"] = answer.getheader("mcp-session-id")
            assert [message for _, message in messages(answer) if message]
        with self.post("notifications/initialized", None) as answer:
            assert answer.status == 202

    def count(self, to, id_=1, **arguments):
        """Begin to count."""
        return self.call("count", {"to": to, **arguments}, id_)

    def call(self, tool, arguments, id_=1):
        """Call a tool; the response is still open."""
        about = {"progressToken": id_}
        params = {"name": tool, "arguments": arguments, "_meta": about}
        return self.post("tools/call", params, id_=id_)

    def post(self, method, params, *, id_=None):
        message = {"jsonrpc": "2.0", "method": method}
        message |= {} if params is None else {"params": params}
        message |= {} if id_ is None else {"id": id_}
        return self.asked("POST", json.dumps(message))

    def resumed(self, last):
        return self.asked("GET", headers={"last-event-id": last})

    @contextlib.contextmanager
    def asked(self, method, body=None, headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, DEADLINE)
        with contextlib.closing(connection):
            connection.request(method, "/mcp", body, {**self.headers, **dict(headers)})
            with contextlib.closing(connection.getresponse()) as answer:
                yield answer


def messages(answer):
    """The ids and messages of a response, up to the answer of a request."""
    id_ = None
    for line in answer:
        name, _, value = line.decode().rstrip("\r\n").partition(": ")
        if name == "id":
            id_ = value
        elif name == "data":
            message = json.loads(value) if value else None
            yield id_, message
            if message and "result" in message:
                return


def steps(found):
    """What was told, in short: the numbers of a count, and its answer."""
    return [
        message["params"]["progress"] if "params" in message else "answer"
        for _, message in found
        if message
    ]
