"""Stands in for the command line of Claude: it talks to the SDK, and to no model.

It writes each line of the transcript to its file below CLAUDE_CONFIG_DIR and mirrors it
to the SDK, as Claude does. It replies with how many prompts the session had, for which
it reads the file that it is to resume. A prompt with "delegate" has a subagent.
"""

from __future__ import annotations

import json
import os
import re
import sys
import uuid
from itertools import pairwise
from pathlib import Path


def main():
    arguments = sys.argv[1:]
    if {"-v", "--version"} & set(arguments):
        sys.stdout.write("99.0.0 (Claude Code)\n")
        return
    # The oldest SDK gives an option and its value as two arguments.
    given = [part for argument in arguments for part in argument.split("=", 1)]
    resumed = dict(pairwise(given)).get("--resume")
    session = Session(resumed or str(uuid.uuid4()))
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "control_request":
            answer(message["request_id"])
        elif message["type"] == "user":
            session.turn(message["message"]["content"])


def tell(**message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def folder():
    """Where Claude keeps the transcripts of the project that it was started in."""
    project = re.sub(r"[^a-zA-Z0-9]", "-", str(Path.cwd()))
    return Path(os.environ["CLAUDE_CONFIG_DIR"]) / "projects" / project


def answer(request):
    response = {"subtype": "success", "request_id": request, "response": {}}
    tell(type="control_response", response=response)


class Session:
    def __init__(self, id_):
        self.id, self.path = id_, folder() / f"{id_}.jsonl"
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        entries = [json.loads(line) for line in lines]
        self.prompts = sum(entry["type"] == "user" for entry in entries)
        known = [entry["uuid"] for entry in entries if "uuid" in entry]
        self.last = known[-1] if known else None

    def turn(self, prompt):
        self.prompts += 1
        self.write(self.path, self.entry("user", {"role": "user", "content": prompt}))
        if "delegate" in prompt:
            agent = folder() / self.id / "subagents" / "agent-1.jsonl"
            message = {"role": "user", "content": "look around"}
            begun = {"isSidechain": True, "parentUuid": None, "uuid": str(uuid.uuid4())}
            self.write(agent, {**self.entry("user", message), **begun})
        text = f"{self.prompts} prompts"
        message = {
            "id": f"msg_{self.prompts}",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [{"type": "text", "text": text}],
        }
        self.write(self.path, self.entry("assistant", message))
        tell(type="assistant", message=message, session_id=self.id)
        tell(
            type="result",
            subtype="success",
            duration_ms=1,
            duration_api_ms=1,
            is_error=False,
            num_turns=1,
            session_id=self.id,
            total_cost_usd=0.0,
            result=text,
        )

    def entry(self, kind, message):
        return {
            "type": kind,
            "uuid": str(uuid.uuid4()),
            "parentUuid": self.last,
            "sessionId": self.id,
            "isSidechain": False,
            "timestamp": "2026-11-16T10:00:00.000Z",
            "message": message,
        }

    def write(self, path, entry):
        if path == self.path:
            self.last = entry["uuid"]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        tell(type="transcript_mirror", filePath=str(path), entries=[entry])


if __name__ == "__main__":
    main()
