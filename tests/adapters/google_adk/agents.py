"""Agents with a scripted model, and events, for the tests of the adapter."""

from __future__ import annotations

import contextlib
import os
import signal

from google.adk.agents import Agent
from google.adk.apps import App, ResumabilityConfig
from google.adk.events import Event, EventActions
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.tools import ToolContext
from google.genai import types

import holdfast

ME = {"app_name": "app", "user_id": "ann"}
HERE = {**ME, "session_id": "s1"}


def said(text, role="user"):
    """A content with one text."""
    return types.Content(role=role, parts=[types.Part(text=text)])


def event(text="hi", *, author="user", at=None, **changes):
    """An event that says something and changes the state."""
    time = {} if at is None else {"timestamp": at}
    return Event(
        author=author,
        invocation_id="i1",
        content=said(text, "user" if author == "user" else "model"),
        actions=EventActions(state_delta=changes.pop("state", {})),
        **time,
        **changes,
    )


def texts(session):
    """What the events of a session say."""
    return [e.content.parts[0].text for e in session.events]


class CallsOnce(BaseLlm):
    """Calls the tool `bump` for each message of a user, then says so."""

    model: str = "scripted"
    killed: bool = False

    async def generate_content_async(self, request, stream=False):
        last = request.contents[-1].parts[0]
        if last.function_response is None:
            call = types.FunctionCall(name="bump", args={"by": 1})
            part = types.Part(function_call=call)
        elif self.killed:
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            part = types.Part(text=f"counted {last.function_response.response['n']}")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def bump(by: int, tool_context: ToolContext) -> dict[str, int]:
    """Count."""
    state = tool_context.state
    state["n"] = state.get("n", 0) + by
    state["user:total"] = state.get("user:total", 0) + by
    state["temp:seen"] = True
    return {"n": state["n"]}


def runner(sessions, *, killed=False, **services):
    """A runner whose invocations can be resumed."""
    agent = Agent(name="counter", model=CallsOnce(killed=killed), tools=[bump])
    resumable = ResumabilityConfig(is_resumable=True)
    app = App(name="app", root_agent=agent, resumability_config=resumable)
    return Runner(app=app, session_service=sessions, **services)


async def turn(running, text="go", session="s1"):
    """The events of one turn that say something."""
    new = said(text)
    return [
        event
        async for event in running.run_async(
            user_id="ann", session_id=session, new_message=new
        )
        if event.content
    ]


@contextlib.asynccontextmanager
async def opened(place):
    """A store for callers that await; it is verified at the end."""
    url, options = place
    async with holdfast.open_async(url, **options) as store:
        yield store
        assert (await store.verify()).problems == ()
