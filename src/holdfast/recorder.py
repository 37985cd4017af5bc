"""Recorders: they take the steps of an agent's loop and save them.

Each step is durable when the recorder's method returns. Its strategy decides which
steps become checkpoints of the conversation, with all that is needed to resume there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Self, TypeAlias, TypedDict, Unpack, get_args

from holdfast._api.runner import AsyncRunner, Runner, check_runner
from holdfast._api.steps import Steps, ThreadLock, awaited_result, plain_result
from holdfast._api.wrong_api import OfThisProcess
from holdfast._engine.context import Context
from holdfast._engine.files.draft import Scannable
from holdfast._engine.recorder.recording import AnyCall, RecorderSetup, Recording
from holdfast._engine.records.agents import checked_agent
from holdfast._engine.threads.lineage import Reference
from holdfast._messages.repair import How, Repair
from holdfast._messages.transcript import TranscriptCall
from holdfast._port import run
from holdfast._values.arguments import checked_items, checked_text, kind_of
from holdfast._values.keywords import refuse_unknown
from holdfast._values.records import UNSET, Checkpoint, checked_name
from holdfast._values.reference import HEAD
from holdfast.effects import Compensation, Effect, Policy
from holdfast.effects import checked as checked_policy
from holdfast.errors import Unstorable
from holdfast.messages import AnyMessage, restored
from holdfast.strategy import Strategy, after_tool_batch

# Functions by the name of the tool, or functions whose own names are those.
Tools: TypeAlias = Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]]


class RecorderOptions(TypedDict, total=False):
    """Options of a recorder.

    ``save`` says when to make a checkpoint. ``repair`` says what to do with tool calls
    that have no result when a conversation is loaded and none is in the journal. With
    ``"interrupted"``, the default, calls of the last turn wait for the loop: those that
    never began are in `Recorder.open_calls`, and those whose outcome is unknown in
    `Recorder.interrupted`; if the loop goes on without them, they get a result that
    says so. ``"drop"`` removes them, ``"propose"`` removes them and returns them, and
    with ``None`` nothing is changed. ``system`` replaces the stored system prompt.
    ``owner`` and ``agent`` are those of a new conversation; another owner's is not
    found. ``effects`` is what happens when a call means an effect that a rewind has
    left behind, and ``tools`` are the functions for `Recorder.call` by name. The files
    of a ``workspace`` are saved with each checkpoint, and there is one after the result
    of each tool, unless the strategy is `never`.
    """

    save: Strategy
    repair: How | None
    system: str | None
    owner: str | None
    agent: str | None
    effects: Policy | None
    tools: Tools
    workspace: Scannable | None


def _new_recording(context: Context, id_: str, options: RecorderOptions) -> Recording:
    refuse_unknown("a recorder", options, RecorderOptions)
    save: object = options.get("save", after_tool_batch())
    if not isinstance(save, Strategy):
        raise Unstorable("save", "must be a strategy, such as after_tool_batch()")
    owner, agent = options.get("owner"), options.get("agent")
    setup = RecorderSetup(
        id=id_,
        save=save,
        repair=_repair(options),
        effects=checked_policy(options.get("effects")),
        tools=_by_name(options.get("tools", ())),
        system=checked_text(options.get("system"), "system"),
        owner=None if owner is None else checked_name(owner, "owner"),
        agent=None if agent is None else checked_agent(agent),
        workspace=_workspace(options.get("workspace")),
    )
    return Recording(setup, context.clock, context.new_id)


def _workspace(found: object) -> Scannable | None:
    if found is None or isinstance(found, Scannable):
        return found
    raise Unstorable("workspace", f"must be a Workspace, not {type(found).__name__}")


def _repair(options: RecorderOptions) -> How | None:
    how = options.get("repair", "interrupted")
    if how is not None and how not in get_args(How):
        text = f"is one of {get_args(How)} or None, not {how!r}"
        raise Unstorable("repair", text)
    return how


def _by_name(tools: Tools) -> dict[str, Callable[..., Any]]:
    if isinstance(tools, Mapping):
        named: dict[str, Callable[..., Any]] = dict(tools)
    else:
        functions = checked_items(tools, "tools")
        named = {getattr(tool, "__name__", ""): tool for tool in functions}
    for name, tool in named.items():
        if type(name) is not str or not name or not callable(tool):
            text = (
                f"must be functions, or map names to functions, and not have"
                f" {kind_of(tool)}; pass {{'name': function}}"
            )
            raise Unstorable("tools", text)
    return named


class _Properties(OfThisProcess):
    """Properties of a recording; none of them waits."""

    _recording: Recording

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, save={self._recording.setup.save})"

    @property
    def id(self) -> str:
        """The id of the conversation."""
        return self._recording.setup.id

    @property
    def messages(self) -> list[AnyMessage]:
        """The whole transcript, with what is not in a checkpoint yet.

        A call whose outcome is unknown is shown with a result that says so.
        """
        return self._recording.given_back()

    @property
    def open_calls(self) -> list[TranscriptCall]:
        """The tool calls to be made: they have no result and never began, in order."""
        return self._recording.open_calls()

    @property
    def left_behind(self) -> tuple[Effect, ...]:
        """The effects that going back to this point has left behind, oldest first."""
        return self._recording.left_behind

    @property
    def passed_over(self) -> list[AnyMessage]:
        """Messages that a recorder got, and another writer went on without."""
        return [restored(message) for message in self._recording.passed_over]

    @property
    def iterations(self) -> int:
        """The number of iterations of the loop, in all runs together."""
        return self._recording.iteration

    @property
    def usage(self) -> dict[str, Any]:
        """The sums of the usage of all replies, in all runs together."""
        return self._recording.usage

    @property
    def metadata(self) -> dict[str, Any]:
        """The caller's own values; what is put there is saved with the next save."""
        return self._recording.metadata

    @property
    def pending(self) -> int:
        """The number of messages that are in the journal and in no checkpoint yet."""
        return self._recording.pending

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """The defects that the transcript had when it was loaded."""
        return self._recording.repairs

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The last save, ``None`` if the conversation is new."""
        return self._recording.checkpoint


class Recorder(_Properties):
    """Records a conversation; ``store.conversations.recorder(id)``.

    It continues where the conversation stopped; the first save creates one that does
    not exist. The arguments of a method are durable when it returns. An error of a save
    is raised and loses nothing: what was recorded stays pending and goes with the next
    save, so do not record it again. Usable from several threads at once, for tools that
    run side by side.
    """

    def __init__(
        self, runner: Runner, id: str, **options: Unpack[RecorderOptions]
    ) -> None:
        check_runner(runner, Runner, "store.conversations.recorder(id)")
        self._recording = _new_recording(runner.context, id, options)
        # A runner without threads: over a blocking backend it never suspends.
        awaited = runner.without_threads()
        self._steps = Steps(self._recording, awaited, ThreadLock(), plain_result)
        self.resume()

    # --- the loop ---------------------------------------------------------------------

    def add(self, *messages: AnyMessage) -> None:
        """Append messages, such as what the user said."""
        run(self._steps.add(messages))

    def iteration(self) -> int:
        """The loop begins another iteration; returns its number."""
        return run(self._steps.iteration())

    def llm_response(
        self,
        message: AnyMessage | Sequence[AnyMessage],
        usage: Mapping[str, Any] | None = None,
    ) -> None:
        """The model replied, with a message or several items.

        The numbers of ``usage`` are summed up by name.
        """
        run(self._steps.llm_response(message, usage))

    def tool_call(self, call: AnyCall) -> None:
        """A tool is about to run; `call` does this itself."""
        run(self._steps.tool_call(call))

    def tool_result(
        self,
        result: AnyMessage | AnyCall,
        content: object = UNSET,
        *,
        is_error: bool = False,
    ) -> None:
        """A tool returned: pass a message, or a call or its id with the content.

        For a call, the message is made in the dialect of the reply that called.
        """
        run(self._steps.tool_result(result, content, is_error=is_error))

    # --- saving and resuming ----------------------------------------------------------

    def save(
        self,
        label: str | None = None,
        *,
        tags: Sequence[str] = (),
        metadata: Mapping[str, object] | None = None,
    ) -> Checkpoint:
        """Save what is not saved yet; if there is nothing, gives the last checkpoint.

        `Conflict` with the code ``transcript_moved`` if another writer has changed the
        messages since.
        """
        return run(self._steps.save(label, tags, metadata))

    def resume(
        self,
        at: Reference = HEAD,
        *,
        discard: bool = False,
        tell: bool = True,
        compensate: bool = False,
    ) -> None:
        """Load the conversation again, or go back to one of its checkpoints.

        Going back rewinds the thread: what was ahead stays reachable. If messages would
        be lost, `Conflict` is raised unless you ``discard`` them. Without ``at``, what
        another worker has recorded meanwhile is loaded and not discarded. The effects
        that are left behind are in `left_behind`, and one message tells the model about
        them unless ``tell`` is false; with ``compensate`` they are undone first.
        """
        run(self._steps.resume(at, discard=discard, tell=tell, compensate=compensate))

    def compensate(self) -> Compensation:
        """Undo the effects left behind, newest first, by the ``undo`` of their tools.

        Each is journaled before and after, so that a repeated call goes on where the
        last one ended. Effects that another fork still has are not undone. The tools
        are those that the recorder was opened with.
        """
        return run(self._steps.compensate())

    def latest_safe(self) -> Checkpoint | None:
        """The newest checkpoint at which every tool call had its answer."""
        return run(self._steps.latest_safe())

    # --- calls made once --------------------------------------------------------------

    def call(
        self,
        call: AnyCall,
        function: Callable[..., Any] | None = None,
        *,
        again: bool = False,
    ) -> Any:
        """The result of ``function(**arguments)``, which runs once, also after a crash.

        Without a function it is the tool of this name that the recorder was opened
        with. The messages before the call are durable first, the call is journaled
        before it is made and its result after it: the next time, the stored result is
        returned and nothing is run. An effect that a rewind has left behind is not
        repeated either: see `holdfast.once`. `Conflict` with the code
        ``call_interrupted`` means that the call began and its end was never recorded:
        find out what happened, then pass ``again=True`` or `resolve` it. A call that
        raised may be made again. One id with another name or other arguments is a
        `Conflict`.
        """
        return run(self._steps.call(call, function, again=again))

    def resolve(self, call: AnyCall, result: object) -> Any:
        """Record what an interrupted call returned; gives the result in force.

        The result is put into the transcript, in the place of one that said that it is
        not known.
        """
        return run(self._steps.resolve(call, result))

    def interrupted(self) -> list[TranscriptCall]:
        """The calls that began and whose end was never recorded, oldest first."""
        return run(self._steps.interrupted())


class AsyncRecorder(_Properties):
    """Like `Recorder`, awaited; the functions it calls may be coroutine functions.

    Awaiting a new one loads its conversation.
    """

    def __init__(
        self, runner: AsyncRunner, id: str, **options: Unpack[RecorderOptions]
    ) -> None:
        import asyncio  # noqa: PLC0415 - the sync API does not need it

        check_runner(runner, AsyncRunner, "await store.conversations.recorder(id)")
        self._recording = _new_recording(runner.context, id, options)
        self._steps = Steps(self._recording, runner, asyncio.Lock(), awaited_result)

    def __await__(self) -> Generator[Any, None, Self]:
        return self._resumed().__await__()

    async def _resumed(self) -> Self:
        await self.resume()
        return self

    # --- the loop ---------------------------------------------------------------------

    async def add(self, *messages: AnyMessage) -> None:
        await self._steps.add(messages)

    async def iteration(self) -> int:
        return await self._steps.iteration()

    async def llm_response(
        self,
        message: AnyMessage | Sequence[AnyMessage],
        usage: Mapping[str, Any] | None = None,
    ) -> None:
        await self._steps.llm_response(message, usage)

    async def tool_call(self, call: AnyCall) -> None:
        await self._steps.tool_call(call)

    async def tool_result(
        self,
        result: AnyMessage | AnyCall,
        content: object = UNSET,
        *,
        is_error: bool = False,
    ) -> None:
        await self._steps.tool_result(result, content, is_error=is_error)

    # --- saving and resuming ----------------------------------------------------------

    async def save(
        self,
        label: str | None = None,
        *,
        tags: Sequence[str] = (),
        metadata: Mapping[str, object] | None = None,
    ) -> Checkpoint:
        return await self._steps.save(label, tags, metadata)

    async def resume(
        self,
        at: Reference = HEAD,
        *,
        discard: bool = False,
        tell: bool = True,
        compensate: bool = False,
    ) -> None:
        await self._steps.resume(at, discard=discard, tell=tell, compensate=compensate)

    async def compensate(self) -> Compensation:
        return await self._steps.compensate()

    async def latest_safe(self) -> Checkpoint | None:
        return await self._steps.latest_safe()

    # --- calls made once --------------------------------------------------------------

    async def call(
        self,
        call: AnyCall,
        function: Callable[..., Any] | None = None,
        *,
        again: bool = False,
    ) -> Any:
        return await self._steps.call(call, function, again=again)

    async def resolve(self, call: AnyCall, result: object) -> Any:
        return await self._steps.resolve(call, result)

    async def interrupted(self) -> list[TranscriptCall]:
        return await self._steps.interrupted()
