"""The runs of graphs in this process, as far as their saver can see them.

LangGraph saves a checkpoint while the tasks that begin at it are already running. A
call of `once` waits until its checkpoint is saved.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import OrderedDict
from collections.abc import Collection, Generator
from concurrent.futures import Future
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from holdfast.adapters.langgraph._namespace import digest, given

# LangGraph's object for all parts of a run allows no weak reference, so a number of
# runs is remembered, and the ones used last are kept.
_REMEMBERED = 4_096


class Run:
    """A run: the checkpoints it has saved, and the calls that wait for more.

    ``graphs`` are the namespaces that have checkpoints. In a run that saves only at its
    end, ``own`` are checkpoints at which it had effects, and ``unsaved`` the ones among
    them that will never be saved, unless the run ends there. ``inner`` are checkpoints
    of subgraphs with effects, by namespace, and ``loaded`` the one that a subgraph
    continues from. ``attempts`` are the attempts at the tasks around each subgraph, by
    the names of these tasks.
    """

    def __init__(self, control: object) -> None:
        # This reference keeps the object alive, so that its id is not used again.
        self._control = control
        self._lock = threading.Lock()
        self._awaited: dict[tuple[str, str], Future[None]] = {}
        self.begin_anew()

    def begin_anew(self) -> None:
        """Reset all fields, because the graph itself starts."""
        self.graphs: set[str] = set()
        self.own: set[str] = set()
        self.unsaved: dict[str, None] = {}
        self.inner: dict[str, set[str]] = {}
        self.attempts: dict[str, dict[str, int]] = {}
        self.loaded: dict[str, str | None] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        self.failure: BaseException | None = None
        # Calls of one run search for earlier effects one after the other, so that two
        # of them do not take over the same one.
        self.turn = threading.Lock()
        self.async_turn = asyncio.Lock()

    def attempts_around(self, config: RunnableConfig | None) -> dict[str, int]:
        """The attempts at the tasks that a graph is started in, by their names."""
        runtime: Any = given(config).get("__pregel_runtime")
        task: Any = getattr(runtime, "execution_info", None)
        if task is None:
            return {}
        graph = str(task.checkpoint_ns).rpartition("|")[0]
        above = self.attempts.get(digest(graph), {})
        return {**above, task.checkpoint_ns: task.node_attempt}

    def awaited(self, ns: str, checkpoint: str) -> Future[None]:
        """A future that ends when a checkpoint is saved, or cannot be any more."""
        with self._lock:
            future = self._awaited.setdefault((ns, checkpoint), Future())
            if self.failure is not None and not future.done():
                future.set_exception(self.failure)
            return future

    def saved(self, ns: str, checkpoint: str) -> None:
        """Wake the calls that wait for a checkpoint."""
        with self._lock:
            future = self._awaited.pop((ns, checkpoint), None)
        if future is not None:
            future.set_result(None)

    def fails(self, failure: BaseException) -> None:
        """Wake all calls: after a failure LangGraph saves nothing more."""
        with self._lock:
            self.failure = failure
            futures = list(self._awaited.values())
            self._awaited.clear()
        for future in futures:
            if not future.done():
                future.set_exception(failure)


class Runs:
    """The runs of a saver."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: OrderedDict[tuple[int, object], Run] = OrderedDict()

    def of(self, config: RunnableConfig) -> Run | None:
        """The run that a config belongs to; ``None`` outside of runs."""
        runtime: Any = given(config).get("__pregel_runtime")
        control: object = getattr(runtime, "control", None)
        if control is None:
            return None
        # A node may run a graph that has a thread of its own.
        key = id(control), given(config).get("thread_id")
        with self._lock:
            run = self._runs.setdefault(key, Run(control))
            self._runs.move_to_end(key)
            if len(self._runs) > _REMEMBERED:
                self._runs.popitem(last=False)
            return run

    def reads(
        self,
        config: RunnableConfig | None,
        found: CheckpointTuple | None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Note that a graph with checkpoints begins and reads its last one."""
        run = self.of(config) if config else None
        if run is not None:
            ns = str(given(config).get("checkpoint_ns") or "")
            # The config of a task has its id; then a node reads its own thread, and no
            # graph starts.
            if not ns and "__pregel_task_id" not in given(config):
                run.begin_anew()
            run.graphs.add(ns)
            run.inner[ns] = set()
            run.loaded[ns] = found.checkpoint["id"] if found else None
            run.attempts[digest(ns)] = run.attempts_around(config)
            run.loop = loop

    @contextlib.contextmanager
    def saving(
        self, config: RunnableConfig, checkpoint: str
    ) -> Generator[Collection[str], None, None]:
        """Tell waiting calls whether the save of a checkpoint in the block succeeds.

        Gives the checkpoints that had effects and are never saved.
        """
        run = self.of(config)
        if run is None:
            yield ()
            return
        ns = str(given(config).get("checkpoint_ns") or "")
        try:
            yield () if ns else tuple(run.unsaved)
        except BaseException as failure:
            run.fails(failure)
            raise
        run.saved(ns, checkpoint)
