"""The routes that change the store; there are none without ``--write``.

Each is an operation that the library and the command line have too. Its answer has the
command that does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias

import msgspec
import orjson
from msgspec import UNSET, UnsetType

from holdfast._api.store import AsyncStore
from holdfast._engine.effects.settle import CallEnd, settle
from holdfast._engine.threads import moves
from holdfast._values import codec
from holdfast._values.records import UNSET as ANY
from holdfast._values.records import Checkpoint, Unset
from holdfast._values.typed import prepare
from holdfast.errors import Corrupt, Unstorable
from holdfast.views.commands import command, in_thread
from holdfast.views.edits import edited
from holdfast.views.effect_list import resolve_command
from holdfast.views.showing import Showing

Document: TypeAlias = dict[str, Any]


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a request to a route."""


class ForkBody(Body, frozen=True, kw_only=True, rename={"start": "from"}):
    """A new thread at a checkpoint; with other values, or with another state.

    The name must be unused: two people cannot make the same fork.
    """

    start: str
    thread: str
    set: dict[str, Any] = {}
    state: Any = UNSET
    expect: None = None


class LabelBody(Body, frozen=True, kw_only=True):
    """A label, ``None`` to take it away; ``expect`` is the one that was seen."""

    checkpoint: str
    label: str | None
    expect: str | UnsetType | None = UNSET


class TagBody(Body, frozen=True, kw_only=True):
    """Tags to add and to take away."""

    checkpoint: str
    add: list[str] = []
    remove: list[str] = []


class RewindBody(Body, frozen=True, kw_only=True):
    """The target of a rewind; ``expect`` is the head that was seen."""

    thread: str
    to: str
    expect: str


class ResolveBody(Body, frozen=True, kw_only=True):
    """The end of a call: its result, or an error."""

    thread: str
    call: str
    result: Any = UNSET
    error: str | None = None


async def fork(store: AsyncStore, body: ForkBody, showing: Showing) -> Document:
    """Make a fork; an edited state is its first step."""
    del showing
    start = await store.get(body.start)
    new = await _state(store, start, body)
    source = store.thread(start.thread)
    made = await source.fork(body.thread, start)
    if not isinstance(new, UnsetType):
        await made.save(new, kind="edit", expect=start)
    head = await made.get()
    given = [f"--set={path}={orjson.dumps(v).decode()}" for path, v in body.set.items()]
    line = command("fork", start.id, body.thread, *given)
    if not isinstance(body.state, UnsetType):
        line += "  # and save the state with thread.save()"
    return {"thread": body.thread, "head": head.id, "command": line}


async def _state(
    store: AsyncStore, start: Checkpoint, body: ForkBody
) -> object | UnsetType:
    """The edited state, checked before anything is made; `UNSET` if none is."""
    if body.set and not isinstance(body.state, UnsetType):
        raise Unstorable("state", "comes without set; give one of them")
    if not body.set and isinstance(body.state, UnsetType):
        return UNSET
    # Values are sent in the form in which documents show them, tags included.
    if not isinstance(body.state, UnsetType):
        return _decoded(body.state, "state")
    values = {path: _decoded(value, path) for path, value in body.set.items()}
    new = edited(await store.load(start), values)
    codec.encode(new)
    return new


def _decoded(value: object, where: str) -> object:
    try:
        return codec.decode(orjson.dumps(value))
    except (TypeError, Corrupt) as error:
        text = (
            f"is not a value as the viewer shows it ({error}); numbers of more than 64"
            ' bits are written as {"$hf.int": "digits"}'
        )
        raise Unstorable(where, text) from None


async def label(store: AsyncStore, body: LabelBody, showing: Showing) -> Document:
    """Label a checkpoint."""
    found = await store.get(body.checkpoint)
    expect: str | Unset | None = ANY
    if not isinstance(body.expect, UnsetType):
        # What is shown may be redacted; then it stands for the label that is there.
        is_shown = body.expect == showing.name(found.label)
        expect = found.label if is_shown else body.expect
    thread = store.thread(found.thread)
    marked = await thread.label(body.label, found, expect=expect)
    said = ["--delete"] if body.label is None else [body.label]
    line = command("label", in_thread(found.thread, found.id), *said)
    return {**_marks(marked, showing), "command": line}


async def tag(store: AsyncStore, body: TagBody, showing: Showing) -> Document:
    """Add and remove tags of a checkpoint."""
    found = await store.get(body.checkpoint)
    thread, reference = store.thread(found.thread), in_thread(found.thread, found.id)
    marked, lines = found, list[str]()
    if body.remove:
        marked = await thread.untag(*body.remove, ref=found)
        lines.append(command("tag", reference, "--delete", *body.remove))
    if body.add:
        marked = await thread.tag(*body.add, ref=found)
        lines.append(command("tag", reference, *body.add))
    return {**_marks(marked, showing), "command": " && ".join(lines)}


async def rewind(store: AsyncStore, body: RewindBody, showing: Showing) -> Document:
    """Move a head, unless it was moved by another."""
    del showing
    head = await store.runner.save(
        moves.rewind, body.thread, body.to, expect=body.expect
    )
    line = command("rewind", in_thread(body.thread, body.to), "--yes")
    return {"thread": body.thread, "head": head.id, "command": line}


async def resolve(store: AsyncStore, body: ResolveBody, showing: Showing) -> Document:
    """Record how a call ended."""
    del showing
    is_result = not isinstance(body.result, UnsetType)
    if is_result == (body.error is not None):
        raise Unstorable("resolve", "needs either a result or an error")
    result = _decoded(body.result, "result") if is_result else None
    end = CallEnd(result, body.error)
    effect = await store.runner.save(settle, body.thread, body.call, end)
    how, said = "--error", body.error or ""
    if is_result:
        how, said = "--result", orjson.dumps(body.result).decode()
    line = resolve_command(effect, how, said)
    return {"thread": body.thread, "call": body.call, "command": line}


def _marks(checkpoint: Checkpoint, showing: Showing) -> Document:
    return {
        "checkpoint": checkpoint.id,
        "label": showing.name(checkpoint.label),
        "tags": [showing.line(tag) for tag in checkpoint.tags],
    }


class Steering(msgspec.Struct, frozen=True):
    """A change, and the type of the body that it takes."""

    body: type[Body]
    change: Callable[[AsyncStore, Any, Showing], Coroutine[Any, Any, Document]]


STEERINGS: Mapping[str, Steering] = {
    "fork": Steering(ForkBody, fork),
    "label": Steering(LabelBody, label),
    "tag": Steering(TagBody, tag),
    "rewind": Steering(RewindBody, rewind),
    "resolve": Steering(ResolveBody, resolve),
}
prepare(*(steering.body for steering in STEERINGS.values()))


def body_of(steering: Steering, data: bytes) -> Body:
    """The body that a route gets; `msgspec.DecodeError` if the bytes are no such."""
    try:
        return msgspec.json.decode(data, type=steering.body)
    except UnicodeDecodeError:
        raise msgspec.DecodeError("the body is not UTF-8; send JSON") from None
    except RecursionError:
        text = "the body is nested too deeply; send what can be stored"
        raise msgspec.DecodeError(text) from None
