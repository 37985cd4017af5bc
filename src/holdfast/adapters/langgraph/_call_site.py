"""The place in a graph where a tool is called, read from the running task's config."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, cast
from weakref import WeakKeyDictionary

import msgspec
from langchain_core.runnables import RunnableConfig

from holdfast.adapters.langgraph._namespace import Namespace, digest, given
from holdfast.adapters.langgraph._runs import Run
from holdfast.errors import Unsupported

_BETWEEN = "|"


class CallSite(msgspec.Struct, frozen=True, kw_only=True):
    """The task that calls a tool.

    ``checkpoints`` are the current checkpoints of the graphs around the task, by
    namespace, the outermost first. ``saves_at_end`` is LangGraph's
    ``durability="exit"``; such a run begins at the checkpoint ``asked``, if given.
    """

    namespace: Namespace
    checkpoints: Mapping[str, str]
    task: str
    step: int
    run: Run
    saves_at_end: bool
    asked: str | None
    config: RunnableConfig

    @property
    def checkpoint(self) -> str:
        """The checkpoint of the outermost graph."""
        return self.checkpoints[""]

    @property
    def inner(self) -> list[str]:
        """The namespaces of the subgraphs around the task."""
        return [ns for ns in self.checkpoints if ns]

    @property
    def node(self) -> str:
        """The name of the node."""
        return self.task.rpartition(_BETWEEN)[2].partition(":")[0]

    def requests(self, call: str | None) -> bool:
        """True if the state of the graph has a call with an id.

        If not, the task made the id up, and makes another one when it is run again.
        """
        return call is not None and any(call == id_ for id_ in _calls(self.config))

    def occurrence(self, identity: str) -> int:
        """The number of earlier calls with an identity in this run of the task."""
        conf = given(self.config)
        attempt = conf["__pregel_runtime"].execution_info.node_attempt
        with _counting:
            counted = _counters.setdefault(conf["__pregel_read"], Counter())
            counted[attempt, identity] += 1
            return counted[attempt, identity] - 1

    def key(self, checkpoint: str, *parts: object) -> str:
        """A key for the journal, unique to a call at a checkpoint."""
        place = [checkpoint]
        if self.inner:
            ns = self.inner[-1]
            place += [digest(task_of(ns)), digest(ns), self.checkpoints[ns]]
        return f"{'/'.join(place)}:{digest(*parts)}"


def task_of(ns: str) -> str:
    """The task that calls a subgraph, for its first or a later call."""
    task, _, last = ns.rpartition(_BETWEEN)
    return task if last.isdecimal() else ns


# LangGraph makes this object for each task; the number of the attempt tells retries
# apart.
_counters: WeakKeyDictionary[Any, Counter[tuple[int, str]]] = WeakKeyDictionary()
_counting = threading.Lock()


def site_of(config: RunnableConfig, run: Run | None) -> CallSite:
    """The task that a config belongs to."""
    conf = given(config)
    by_namespace = cast("Mapping[str, str]", conf.get("checkpoint_map") or {})
    runtime: Any = conf.get("__pregel_runtime")
    if run is None or not hasattr(runtime, "execution_info"):
        raise Unsupported(
            "calls are made once inside of a graph, with LangGraph 1.2 or newer; call"
            " this tool from a node, or update LangGraph"
        )
    task = str(conf["checkpoint_ns"])
    around = _around(task, by_namespace)
    if not run.graphs.issuperset(around):
        raise Unsupported(
            "a tool in a subgraph with checkpointer=False cannot be made once, because"
            " its steps are not saved; compile the subgraph without checkpointer="
        )
    return CallSite(
        namespace=Namespace(str(conf["thread_id"])),
        checkpoints=around,
        task=task,
        step=config.get("metadata", {}).get("langgraph_step", 0),
        run=run,
        saves_at_end=conf.get("__pregel_durability") == "exit",
        asked=config.get("metadata", {}).get("checkpoint_id"),
        config=config,
    )


def _around(task: str, by_namespace: Mapping[str, str]) -> dict[str, str]:
    """The checkpoints of the graphs that a task is in, the outermost first."""
    found: dict[str, str] = {}
    for ns in sorted(by_namespace, key=len):
        # A replayed subgraph has more of them. And a task that another task starts is
        # at the checkpoint of that task, and not in a graph of its own.
        is_around = not ns or task.startswith(ns + _BETWEEN)
        if is_around and by_namespace[ns] not in found.values():
            found[ns] = by_namespace[ns]
    return found


def _calls(config: RunnableConfig) -> Iterable[str | None]:
    """The ids of the tool calls in the state that the task reads."""
    read: Any = given(config)["__pregel_read"]
    # LangGraph binds the channels of the graph as the second argument.
    channels = cast("Mapping[str, Any]", read.args[1])
    state = cast("Mapping[str, Any]", read(list(channels)))
    for value in state.values():
        messages = cast("Iterable[Any]", value if isinstance(value, list) else [value])
        for message in messages:
            for call in getattr(message, "tool_calls", None) or ():
                yield call["id"]
