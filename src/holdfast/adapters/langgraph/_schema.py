"""The classes that a graph declares, found in the graph that calls the saver.

LangGraph names these classes to a saver (`with_allowlist`) only if the environment
variable ``LANGGRAPH_STRICT_MSGPACK`` is set. Otherwise no argument leads from a saver
to its graph, so the graph is looked for among the callers. Only type hints of the
program itself are followed, never a stored name.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Collection, Iterable, Iterator
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

from holdfast.adapters.langgraph._types import Types
from holdfast.operations.objects.shapes import is_allowable

# The distance from a graph to its call of a saver: a method of the graph, of its loop,
# of the saver.
_FRAMES = 8
# A program may make new classes for every request, so the oldest are forgotten.
_MOST = 2_000


class DeclaredTypes:
    """The types of a saver: those of the caller, and those that its graphs declare.

    ``saved`` are all types that may be saved. A graph loads only its own, because two
    graphs may have different classes of one name.
    """

    def __init__(self, given: Types) -> None:
        self.given = self.saved = given
        self._lock = threading.Lock()
        # By the builder, because all copies of a graph share it; it may grow.
        self._known: WeakKeyDictionary[object, tuple[int, Types]] = WeakKeyDictionary()

    def loaded(self) -> Types:
        """The types that the calling graph may load; all types if no graph calls."""
        graph = _calling_graph()
        if graph is None:
            return self.saved
        source, size = getattr(graph, "builder", graph), _size(graph)
        with self._lock:
            known, types = self._known.get(source, (0, self.given))
            if known != size:
                hints = list(_hints(graph))
                types = self.given.allowing(hints)
                self._known[source] = size, types
                whole = self.saved.allowing(hints)
                self.saved = whole if len(whole.classes) <= _MOST else types
        return types


def _calling_graph() -> Any:
    """The graph that calls the saver, ``None`` if none does."""
    pregel: Any = sys.modules.get("langgraph.pregel")
    if pregel is None:
        return None
    for frame in _callers():
        if frame.f_code.co_varnames[:1] == ("self",):
            caller = frame.f_locals["self"]
            if isinstance(caller, pregel.Pregel):
                return caller
    return None


def _callers() -> Iterator[FrameType]:
    frame = inspect.currentframe()
    for _ in range(_FRAMES):
        frame = frame.f_back if frame else None
        if frame is None:
            return
        yield frame


def _size(graph: Any) -> int:
    """A number that grows when something is added to a graph."""
    return len(graph.nodes) + len(graph.channels) + len(_schemas(graph))


def _hints(outermost: Any) -> Iterator[object]:
    """The type hints of a graph and its subgraphs: schemas, and values of channels."""
    graphs = [outermost]
    for graph in graphs:
        yield from _schemas(graph)
        for channel in graph.channels.values():
            yield getattr(channel, "ValueType", None)
            yield getattr(channel, "UpdateType", None)
        # A node may call its own graph again. A remote graph has no channels here.
        graphs += [
            subgraph
            for _, subgraph in graph.get_subgraphs()
            if hasattr(subgraph, "channels") and subgraph not in graphs
        ]


def _schemas(graph: Any) -> Collection[object]:
    return getattr(getattr(graph, "builder", None), "schemas", ())


def named_classes(names: Iterable[tuple[str, ...]]) -> Iterator[type]:
    """The already imported classes among these modules and names."""
    for module, *path in names:
        found: Any = sys.modules.get(module)
        for name in path:
            found = getattr(found, name, None)
        if isinstance(found, type) and is_allowable(found):
            yield found
