"""The steps of LangGraph threads: which nodes ran, and what is only bookkeeping.

Read from the stored form, so that it works without LangGraph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.threads import drafts
from holdfast._messages.langgraph_form import FRAME, VECTORS
from holdfast._messages.loose import fields_of, parts_of
from holdfast._messages.tally import Tally, counts_of
from holdfast._values import paths
from holdfast._values.records import Checkpoint
from holdfast.diff import Diff, Op
from holdfast.views.growth import manifest_of

# The channel of a run's input, and the one of tasks that a node has sent.
_INPUT = "__start__"
_SENT = "__pregel_tasks"
# Names in ``versions_seen`` that are no nodes.
_NO_NODE = frozenset({"", "__input__", "__interrupt__"})
# Prefixes of the values that say where a graph is, and not what it knows.
_BOOKKEEPING = (FRAME, VECTORS, "__pregel_", "branch:to:", "join:")
_METADATA = frozenset({"source", "step", "parents", "counters_since_delta_snapshot"})
# The counts of a conversation, and its values that follow from its messages.
_COUNTS = frozenset(counts_of(Tally()))
_OF_CONVERSATIONS = frozenset({"counts", "content_ids"})
# The source of a checkpoint that its nodes have made.
_LOOP = "loop"


def is_graph(checkpoint: Checkpoint) -> bool:
    """True if LangGraph saved the checkpoint."""
    return FRAME in manifest_of(checkpoint).values


# --- the nodes ------------------------------------------------------------------------


async def nodes_of(
    context: Context,
    checkpoints: Iterable[Checkpoint],
    parents: Mapping[str, Checkpoint],
) -> dict[str, list[str]]:
    """The nodes that ran before each checkpoint of a graph, by its id."""
    graphs = [c for c in checkpoints if is_graph(c)]
    if not graphs:
        return {}
    every = {c.id: OpenedCheckpoint.of(c) for c in graphs}
    for parent in (parents.get(c.parent or "") for c in graphs):
        if parent is not None and parent.id not in every:
            every[parent.id] = OpenedCheckpoint.of(parent)
    names = (FRAME, _SENT)
    await drafts.read_bodies(context, list(every.values()), names)
    read = {
        id_: await drafts.read_values(context, c, names) for id_, c in every.items()
    }
    return {c.id: _nodes(read.get(c.parent or "", {}), read[c.id]) for c in graphs}


def _nodes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The nodes that have seen new versions of channels, and those of sent tasks."""
    old, new = _seen(before), _seen(after)
    found = {node for node, versions in new.items() if old.get(node) != versions}
    for sent in parts_of(before.get(_SENT)):
        found.add(str(fields_of(sent).get("node", "")))
    return sorted(found - _NO_NODE)


def _seen(values: Mapping[str, Any]) -> Mapping[str, object]:
    return fields_of(fields_of(values.get(FRAME)).get("seen"))


def step_text(checkpoint: Checkpoint, nodes: Sequence[str]) -> str:
    """The source of a graph's checkpoint: its nodes, or an input, an update, a fork."""
    source = checkpoint.metadata.get("source", _LOOP)
    made = [] if source == _LOOP else [str(source)]
    return " ".join([*made, ", ".join(nodes)]).strip()


# --- bookkeeping ----------------------------------------------------------------------


def own_metadata(checkpoint: Checkpoint) -> dict[str, object]:
    """The metadata of a checkpoint without those that LangGraph adds."""
    metadata = checkpoint.metadata
    if not is_graph(checkpoint):
        return metadata
    return {k: v for k, v in metadata.items() if k not in _METADATA}


def own_values(state: Mapping[object, object]) -> Mapping[object, object]:
    """The values of a state without bookkeeping."""
    if not _has_bookkeeping(state):
        return state
    derived = _derived(state)
    return {k: v for k, v in state.items() if not (is_bookkeeping(k) or k in derived)}


def without_bookkeeping(found: Diff, *states: object) -> Diff:
    """The changes of what a graph or an item knows; of other states all changes."""
    if not any(map(_has_bookkeeping, states)):
        return found
    derived = frozenset[str]().union(*map(_derived, states))

    def hidden(op: Op, path: Sequence[object]) -> bool:
        return _is_hidden(op, path) or bool(path and path[0] in derived)

    return Diff(
        tuple(c for c in found.changes if not hidden(c.op, c.path)),
        tuple(o for o in found.operations if not hidden(o[0], paths.parse_path(o[1]))),
    )


def _has_bookkeeping(state: object) -> bool:
    """True for the state of a graph, or of an item of its memory with vectors."""
    fields = fields_of(state)
    return not fields.keys().isdisjoint((FRAME, VECTORS)) or bool(_derived(fields))


def _derived(state: object) -> frozenset[str]:
    """The values of a conversation that follow from its messages."""
    counts = fields_of(fields_of(state).get("counts"))
    return _OF_CONVERSATIONS if counts.keys() >= _COUNTS else frozenset()


def _is_hidden(op: Op, path: Sequence[object]) -> bool:
    name = str(path[0]) if path else ""
    # Show the input of a run; hide the change that only marks it as consumed.
    return is_bookkeeping(name) or (op == "removed" and name == _INPUT)


def is_bookkeeping(name: object) -> bool:
    """True for a value that says only where the graph is."""
    return isinstance(name, str) and name.startswith(_BOOKKEEPING)
