"""Arguments that name threads and checkpoints, and their completion from the store.

Completion has a time limit: a store that does not answer in time completes nothing.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

import click
from click.shell_completion import CompletionItem

import holdfast
from holdfast._api.store import Store
from holdfast._engine.records import agent_checkpoints, agents
from holdfast.cli._command import TextParameter
from holdfast.cli._invocation import Invocation
from holdfast.cli._thread_names import find_thread, prefixes

LIMIT_SECONDS = 0.05
MOST = 50


class StoreCompletion(TextParameter):
    """An argument that is completed from the store."""

    def __init__(self, name: str, find: Callable[[Store, str], Iterator[str]]) -> None:
        self.name, self._find = name, find

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - click's
        incomplete: str,
    ) -> list[CompletionItem]:
        return _complete(ctx, lambda store: self._find(store, incomplete))


def _complete(
    ctx: click.Context, find: Callable[[Store], Iterator[str]]
) -> list[CompletionItem]:
    cli = ctx.ensure_object(Invocation)
    cli.options.wait = LIMIT_SECONDS
    found: list[str] = []

    def look() -> None:
        # An error message in the middle of a half-typed line would only disturb.
        with contextlib.suppress(Exception), cli.reading() as store:
            found.extend(find(store))

    # Loads the modules that any store needs: the time limit is for the store only.
    holdfast.open(":memory:").close()
    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(LIMIT_SECONDS)
    return [CompletionItem(text) for text in tuple(found)]


def _threads(store: Store, prefix: str) -> Iterator[str]:
    """Names of threads, and ids of conversations, agents and documents."""
    yield from (record.id for record in store.threads(prefix=prefix, limit=MOST))
    # With nothing typed yet, every thread is there by its name.
    for kind in prefixes() if prefix else ():
        found = store.threads(prefix=kind + prefix, limit=MOST)
        yield from (record.id.removeprefix(kind) for record in found)


def _references(store: Store, incomplete: str) -> Iterator[str]:
    """Threads; after an ``@`` the labels, tags and steps of the newest checkpoints."""
    name, at, _ = incomplete.rpartition("@")
    found = _marked(store, name) if at else _threads(store, incomplete)
    return (text for text in found if text.startswith(incomplete))


def _marked(store: Store, name: str) -> Iterator[str]:
    found = find_thread(store, name)
    for checkpoint in found[0].history(MOST) if found else ():
        if checkpoint.label:
            yield f"{name}@label:{checkpoint.label}"
        yield from (f"{name}@tag:{tag}" for tag in checkpoint.tags)
        yield f"{name}@{checkpoint.step}"


def _agents(store: Store, prefix: str) -> Iterator[str]:
    found = store.threads(kind=agents.KIND, prefix=agents.PREFIX + prefix, limit=MOST)
    return (record.id.removeprefix(agents.PREFIX) for record in found)


class AgentCheckpointCompletion(TextParameter):
    """A checkpoint of the agent that is named before it on the line."""

    name = "checkpoint"

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - click's
        incomplete: str,
    ) -> list[CompletionItem]:
        thread = agent_checkpoints.thread_of(ctx.params["agent"])
        return _complete(ctx, lambda store: _checkpoints(store, thread, incomplete))


def _checkpoints(store: Store, thread: str, incomplete: str) -> Iterator[str]:
    """The names and steps of the newest checkpoints of an agent."""
    found = store.thread(thread).history(MOST)
    # A shell would take a name with a space for two words.
    names = dict.fromkeys(c.label for c in found if c.label and " " not in c.label)
    texts = (*names, *(f"@{checkpoint.step}" for checkpoint in found))
    return (text for text in texts if text.startswith(incomplete))


THREAD = StoreCompletion("thread", _threads)
AGENT = StoreCompletion("agent", _agents)
AGENT_CHECKPOINT = AgentCheckpointCompletion()
# A checkpoint, as `holdfast.cli._resolve` reads it.
REFERENCE = StoreCompletion("reference", _references)
