"""A model with a script, behind the address at which Claude looks for its models.

It is for the command line of Claude that the SDK brings along. It calls a tool once,
and then says how many prompts it was given. `HELD` is not answered until `released`.
"""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CALL = {"id": "toolu_1", "name": "Bash", "input": {"command": "echo hi from a tool"}}

HELD = "prompt-held"


class Model:
    """A model that is served; ``env`` is what Claude has to be told about it."""

    def __init__(self, port):
        self.released = threading.Event()
        self.env = {
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }


@contextlib.contextmanager
def serving():
    """A model, as long as the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Requests)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    server.model = Model(server.server_port)
    try:
        yield server.model
    finally:
        server.model.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Requests(BaseHTTPRequestHandler):
    def do_GET(self):
        self._begin("application/json")
        self.wfile.write(b"{}")

    def do_HEAD(self):
        self._begin("application/json")

    def do_POST(self):
        text = self.rfile.read(int(self.headers["content-length"]))
        if HELD.encode() in text:
            self.server.model.released.wait()
        asked = json.loads(text)
        self._begin("text/event-stream")
        message = {
            "id": f"msg_{uuid.uuid4().hex}",
            "type": "message",
            "role": "assistant",
            "model": asked.get("model"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 3, "output_tokens": 1},
        }
        self._tell("message_start", message=message)
        reason = self._reply(asked.get("messages", []))
        end = {"stop_reason": reason, "stop_sequence": None}
        self._tell("message_delta", delta=end, usage={"output_tokens": 9})
        self._tell("message_stop")

    def _reply(self, messages):
        if "tool_result" not in json.dumps(messages):
            delta = {
                "type": "input_json_delta",
                "partial_json": json.dumps(CALL["input"]),
            }
            self._block({**CALL, "type": "tool_use", "input": {}}, delta)
            return "tool_use"
        prompts = json.dumps(messages).count("prompt-")
        delta = {"type": "text_delta", "text": f"{prompts} prompts"}
        self._block({"type": "text", "text": ""}, delta)
        return "end_turn"

    def _block(self, block, delta):
        self._tell("content_block_start", index=0, content_block=block)
        self._tell("content_block_delta", index=0, delta=delta)
        self._tell("content_block_stop", index=0)

    def _begin(self, kind):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.end_headers()

    def _tell(self, event, **fields):
        data = json.dumps({"type": event, **fields})
        self.wfile.write(f"event: {event}\ndata: {data}\n\n".encode())

    def log_message(self, *_):
        """Nothing: the server of the standard library writes to standard error."""
