"""Sessions for the tests of the OpenAI Agents SDK's adapter."""

from __future__ import annotations

import asyncio
import contextlib
from importlib.metadata import version

import holdfast
from holdfast.adapters.openai_agents import HoldfastSession
from holdfast.conversations import tally

VERSION = tuple(map(int, version("openai-agents").split(".")[:2]))


def user(text, **more):
    """An item that the SDK makes of what a user said."""
    return {"role": "user", "content": text, **more}


def reply(text):
    """An item in which the model says something."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content}


def call(id_="call_1", name="refund"):
    """An item in which the model calls a tool."""
    return {"type": "function_call", "call_id": id_, "name": name, "arguments": "{}"}


def output(id_="call_1", text="done"):
    """An item with what the tool gave."""
    return {"type": "function_call_output", "call_id": id_, "output": text}


def texts(items):
    """What user and model said, in order."""
    return [_text(item) for item in items]


def _text(item):
    content = item.get("content", item.get("output"))
    return content if isinstance(content, str) else content[0]["text"]


@contextlib.asynccontextmanager
async def opened(place, api):
    """A store with the sync or the async API; it is verified at the end."""
    url, options = place
    if api == "sync":
        with holdfast.open(url, **options) as store:
            yield store
            assert store.verify().problems == ()
    else:
        async with holdfast.open_async(url, **options) as store:
            yield store
            assert (await store.verify()).problems == ()


def talk(body, place=(":memory:", {}), api="sync", **options):
    """Run a test's coroutine function with a session."""

    async def main():
        async with opened(place, api) as store:
            session = HoldfastSession("chat", store, **options)
            await body(session)
            await check_counts(store, session)

    asyncio.run(main())


async def check_counts(store, session):
    """What a listing says of the conversation is true of its items."""
    found = store.conversations.list()
    page = found if isinstance(found, holdfast.Page) else await found
    listed = {summary.id: summary for summary in page}
    if session.session_id in listed:
        counted = tally(await session.get_items(limit=-1))
        summary = listed[session.session_id]
        assert (summary.messages, summary.exchanges, summary.open_calls) == (
            counted.messages,
            counted.exchanges,
            counted.open,
        )
