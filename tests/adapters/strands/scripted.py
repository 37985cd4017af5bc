"""Agents of Strands with a model that says what the test wants."""

import copy
import inspect
import json

from strands import Agent, tool
from strands.models import Model

# Agents have a storage of their own, and snapshots of graphs, since later versions.
IS_OLD = "storage" not in inspect.signature(Agent).parameters


class ScriptedModel(Model):
    """Answers with texts, raises, or calls a tool: ``("add", {"a": 1, "b": 2})``."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.asked = []

    def update_config(self, **config):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, *args, **kwargs):
        raise NotImplementedError
        yield

    async def stream(self, messages, *args, **kwargs):
        self.asked.append(copy.deepcopy(messages))
        reply = self.replies.pop(0)
        if isinstance(reply, type):
            raise reply
        yield {"messageStart": {"role": "assistant"}}
        for event in _said(reply) if isinstance(reply, str) else _called(*reply):
            yield event


def _said(text):
    yield {"contentBlockStart": {"start": {}}}
    yield {"contentBlockDelta": {"delta": {"text": text}}}
    yield {"contentBlockStop": {}}
    yield {"messageStop": {"stopReason": "end_turn"}}


def _called(name, arguments):
    use = {"name": name, "toolUseId": f"call-of-{name}"}
    yield {"contentBlockStart": {"start": {"toolUse": use}}}
    delta = {"toolUse": {"input": json.dumps(arguments)}}
    yield {"contentBlockDelta": {"delta": delta}}
    yield {"contentBlockStop": {}}
    yield {"messageStop": {"stopReason": "tool_use"}}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def agent(session, *replies, **options):
    """An agent of a session, which it restores."""
    given = {"tools": [add], "callback_handler": None, **options}
    return Agent(model=ScriptedModel(*replies), session_manager=session, **given)


def said(messages):
    """The texts of messages, calls and results included."""
    return [_text(block) for message in messages for block in message["content"]]


def _text(block):
    if "toolUse" in block:
        return f"{block['toolUse']['name']}()"
    if "toolResult" in block:
        return f"-> {block['toolResult']['content'][0]['text']}"
    return block["text"].strip()
