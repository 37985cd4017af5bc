"""The journal of the calls that graphs make once, in the thread of the graph.

Effects in subgraphs also belong to the thread of the outermost graph, because callers
rewind and fork that thread.
"""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn, cast

import msgspec

from holdfast.adapters.langgraph._call_site import CallSite
from holdfast.adapters.langgraph._get import find_checkpoint, find_thread
from holdfast.adapters.langgraph._line import CallLine, InnerLine
from holdfast.adapters.langgraph._namespace import Namespace
from holdfast.adapters.langgraph._put import deleted
from holdfast.adapters.langgraph._runner import SaverRunner, running_loop
from holdfast.adapters.langgraph._runs import Runs
from holdfast.adapters.langgraph._types import Types
from holdfast.backends import NEW_THREAD, Checkpoint, ThreadRecord
from holdfast.effects import Declaration, Effect, Policy
from holdfast.errors import Conflict, Unstorable, Unsupported
from holdfast.operations import Context
from holdfast.operations.effects import JournaledCall, Line, Permission, calls, ledger
from holdfast.operations.graphs import origin_of
from holdfast.operations.threads import grants
from holdfast.operations.transcripts import TranscriptCall


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call to be made once; ``id`` is the model's, if a model asked for it."""

    id: str | None
    name: str
    arguments: dict[str, Any]
    tool: Declaration
    site: CallSite
    is_requested: bool
    occurrence: int

    @classmethod
    def at(
        cls,
        site: CallSite,
        tool: Declaration,
        name: str,
        arguments: dict[str, Any],
        id_: str | None,
    ) -> Call:
        """A call at a place in a graph."""
        is_requested = site.requests(id_)
        identity = tool.identity(name, arguments)
        return cls(
            id=id_,
            name=name,
            arguments=arguments,
            tool=tool,
            site=site,
            is_requested=is_requested,
            occurrence=0 if is_requested else site.occurrence(identity),
        )

    @property
    def is_replayable(self) -> bool:
        """True if a replay of the checkpoint has this very call again."""
        return self.is_requested and not self.site.inner

    def journaled(self, checkpoint: str) -> JournaledCall:
        """The call with its key, with ``checkpoint`` as its place."""
        site = self.site
        identity = self.tool.identity(self.name, self.arguments)
        if self.is_replayable:
            key = site.key(checkpoint, site.node, self.id)
        elif self.is_requested:
            key = site.key(checkpoint, site.task, site.step, self.id)
        else:
            key = site.key(checkpoint, site.task, identity, self.occurrence)
        shown = self.id or f"{self.name}:{self.occurrence}"
        return JournaledCall(
            thread=site.namespace.name,
            start=site.namespace.start(),
            key=key,
            call=TranscriptCall(shown, self.name, self.arguments),
            identity=identity,
            anchor=checkpoint,
            has_new_arguments=not self.is_requested,
        )


class Begun(msgspec.Struct, frozen=True):
    """A call that may be made, or its result."""

    made: JournaledCall
    permitted: Permission


class CallJournal:
    """Records the calls of the graphs of a saver, for sync and async callers."""

    def __init__(self, runner: SaverRunner, types: Types, runs: Runs) -> None:
        self.types, self.runs = types, runs
        self._runner = runner

    def begin(self, call: Call) -> Begun:
        """The permission to make a call, with its beginning recorded; or its result."""
        with call.site.run.turn:
            found = self._runner.run(_begin, call)
            if found is None:
                self._wait(call.site)
                found = self._runner.run(_begin, call)
        return found or _refuse_deleted(call)

    async def abegin(self, call: Call) -> Begun:
        async with call.site.run.async_turn:
            found = await self._runner.arun(_begin, call)
            if found is None:
                await self._wait_async(call.site)
                found = await self._runner.arun(_begin, call)
        return found or _refuse_deleted(call)

    def _wait(self, site: CallSite) -> None:
        loop = site.run.loop
        if loop is not None and loop is running_loop():
            raise Unsupported(
                "a sync function that is made once would stop the event loop; define it"
                " with async def and await it, or make the node a sync function"
            )
        for ns, checkpoint in site.checkpoints.items():
            future = site.run.awaited(ns, checkpoint)
            if self._runner.run(_is_saved, site, ns):
                site.run.saved(ns, checkpoint)
            future.result()

    async def _wait_async(self, site: CallSite) -> None:
        for ns, checkpoint in site.checkpoints.items():
            future = site.run.awaited(ns, checkpoint)
            if await self._runner.arun(_is_saved, site, ns):
                site.run.saved(ns, checkpoint)
            await asyncio.wrap_future(future)

    def complete(self, begun: Begun, result: object) -> None:
        """Record the result of a call; as its text if it cannot be stored."""
        self._runner.run(_complete, self.types, begun, result)

    async def acomplete(self, begun: Begun, result: object) -> None:
        await self._runner.arun(_complete, self.types, begun, result)

    def fail(self, begun: Begun, error: Exception) -> None:
        """Record that a call raised, so that it may be made again."""
        self._runner.run(_fail, begun, error)

    async def afail(self, begun: Begun, error: Exception) -> None:
        await self._runner.arun(_fail, begun, error)

    def result(self, begun: Begun) -> Any:
        """The recorded result of a call that was made before."""
        return self.types.revive(begun.permitted.result)


def _refuse_deleted(call: Call) -> NoReturn:
    raise deleted(call.site.namespace)


async def _is_saved(context: Context, site: CallSite, ns: str) -> bool:
    record = await find_thread(context, Namespace(site.namespace.thread, ns))
    if record is None or record.deleted_at is not None:
        return False
    return await find_checkpoint(context, record, site.checkpoints[ns]) is not None


async def _begin(context: Context, call: Call) -> Begun | None:
    """The permission or result; ``None`` if a checkpoint before is not saved yet."""
    site = call.site
    record = await find_thread(context, site.namespace)
    if record is not None and record.deleted_at is not None:
        record = None
    head = await find_checkpoint(context, record, site.checkpoint) if record else None
    if not site.saves_at_end:
        inner = [await _is_saved(context, site, ns) for ns in site.inner]
        if head is None or not all(inner):
            return None
    if head is None:
        made, line = await _unsaved(context, call, record)
    else:
        made, line = await _saved(context, call, head)
    policy = _policy(record, call.tool)
    permitted = await calls.permit(context, made, line, policy)
    if not permitted.is_completed:
        await calls.begin(context, made, permitted)
    return Begun(made, permitted)


async def _saved(
    context: Context, call: Call, head: Checkpoint
) -> tuple[JournaledCall, Line]:
    origin = await origin_of(context, head) if call.is_replayable else head
    call.site.run.own.add(origin.id)
    line = CallLine(head.family, head, {origin.id}, inner=_inner(call.site))
    return call.journaled(origin.id), line


async def _unsaved(
    context: Context, call: Call, record: ThreadRecord | None
) -> tuple[JournaledCall, Line]:
    """The place and line of a call in a run that saves at its end only.

    Its checkpoint may never exist. Its effect belongs to the checkpoint that the run
    saves at its end, and is left behind if the run is killed before.
    """
    site, run = call.site, call.site.run
    base = record.head if record else None
    if record is not None and site.asked is not None:
        base = await find_checkpoint(context, record, site.asked)
    run.unsaved[site.checkpoint] = None
    family = record.family if record else None
    ours = {*run.own, *run.unsaved}
    line = CallLine(family, base, ours, goes_on=True, inner=_inner(site))
    return call.journaled(site.checkpoint), line


def _inner(site: CallSite) -> InnerLine | None:
    if not site.inner:
        return None
    ns = site.inner[-1]
    checkpoint = site.checkpoints[ns]
    seen = site.run.inner.setdefault(ns, set())
    seen.add(checkpoint)
    return InnerLine(
        around=site.checkpoint,
        thread=site.namespace.name,
        namespace=Namespace(site.namespace.thread, ns),
        checkpoint=checkpoint,
        loaded=site.run.loaded.get(ns),
        seen=seen,
        attempts=site.run.attempts,
    )


def _policy(record: ThreadRecord | None, tool: Declaration) -> Policy:
    ours = record.effects if record else None
    return cast("Policy", ours or tool.policy or "replay")


async def _complete(
    context: Context, types: Types, begun: Begun, result: object
) -> None:
    made, attempt = begun.made, begun.permitted.attempt
    try:
        plain = types.plain(result, "result")
        await calls.complete(context, made, attempt, plain)
    except Unstorable:
        await calls.complete(context, made, attempt, str(result))


async def _fail(context: Context, begun: Begun, error: Exception) -> None:
    text = f"{type(error).__name__}: {error}"
    await calls.fail(context, begun.made, begun.permitted.attempt, text)


async def consume(context: Context, namespace: Namespace, grant: str) -> bool:
    """Use a grant of a thread up; True for the first caller only."""
    return await grants.consume(context, namespace.name, namespace.start(), grant)


# --- calls whose outcome is unknown ---------------------------------------------------


async def unknown(context: Context, namespace: Namespace) -> list[Effect]:
    """The calls of a thread and its forks without a recorded end."""
    record = await find_thread(context, namespace)
    if record is None or record.deleted_at is not None:
        return []
    found = await ledger.effects_of_family(context, record.family)
    return [effect for effect in found if effect.status == "unknown"]


async def resolve(
    context: Context, types: Types, effect: Effect, result: object
) -> None:
    """Record the result of a call without a recorded end."""
    plain = types.plain(result, "result")
    await calls.complete(context, _stored(effect), effect.attempt, plain)


async def retry(context: Context, effect: Effect) -> None:
    """Record that a call had no effect, so that it may be made again."""
    await calls.fail(context, _stored(effect), effect.attempt, "it had no effect")


def _stored(effect: Effect) -> JournaledCall:
    if effect.status != "unknown":
        raise Conflict(
            f"it is known how {effect} ended; only a call that began and did not end"
            " can be decided",
            code="call_ended",
            thread=effect.thread,
        )
    return JournaledCall(
        thread=effect.thread,
        start=NEW_THREAD,
        key=effect.key,
        call=TranscriptCall(effect.call_id, effect.tool, effect.arguments),
        identity="",
        anchor=effect.checkpoint,
    )
