"""Where in a graph a tool is called, read from the config of the running task."""

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

    ``checkpoints`` are those at which the graphs around it are, by namespace, the
    outermost first. ``saves_at_end`` is LangGraph's ``durability="exit"``; such a run
    begins at the checkpoint ``asked``, if given.
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
        """Whether the state of the graph has a call with an id.

        The id of another call was made up by the task, and will be another one when the
        task is run again.
        """
        return call is not None and any(call == id_ for id_ in _calls(self.config))

    def occurrence(self, identity: str) -> int:
        """How many calls with an identity this execution of the task made before."""
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
    """The task that a subgraph is called by, the first or the nth time."""
    task, _, last = ns.rpartition(_BETWEEN)
    return task if last.isdecimal() else ns


# LangGraph makes this object for each task; a retry is told apart by its attempt.
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
        # There are more of a replayed subgraph. And a task that another task starts is
        # at the checkpoint of that one, not in a graph of its own.
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
