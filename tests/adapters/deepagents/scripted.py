"""A deep agent whose model calls the tools that the test wants."""

from itertools import count

from deepagents import create_deep_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

_IDS = count()


class ScriptedModel(GenericFakeChatModel):
    """Says its messages in turn, whatever the tools are."""

    def bind_tools(self, tools, **options):
        del tools, options
        return self


def call(name, **arguments):
    """A reply that calls a tool."""
    made = {"name": name, "args": arguments, "id": f"call-{next(_IDS)}"}
    return AIMessage(content="", tool_calls=[made])


def agent(backend, *replies, **options):
    """A deep agent that makes the replies, and then says that it is done."""
    messages = iter([*replies, AIMessage(content="done")])
    model = ScriptedModel(messages=messages)
    return create_deep_agent(model=model, backend=backend, **options)


def asked(text="go"):
    return {"messages": [{"role": "user", "content": text}]}


def results(state):
    """What the tools answered."""
    return [m.content for m in state["messages"] if isinstance(m, ToolMessage)]
