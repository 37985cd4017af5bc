"""The span and the metrics of one operation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextvars import Token
from types import TracebackType
from typing import Self

from msgspec.structs import replace
from opentelemetry import context as trace_context
from opentelemetry import trace
from opentelemetry.trace import SpanContext, SpanKind, StatusCode

from holdfast._engine.context import Context
from holdfast._engine.effects.calls import INTERRUPTED
from holdfast._values.records import Checkpoint
from holdfast.errors import HoldfastError
from holdfast.telemetry._instruments import Instruments, LogFile
from holdfast.telemetry._measures import Measures, MeasuringBackend
from holdfast.telemetry._names import (
    agent_of,
    collection_of,
    conversation_of,
    operation_name,
    thread_in,
)

Attributes = dict[str, str | int | float]


class StoreObserver:
    """Makes a span and metrics for every operation of one store."""

    def __init__(
        self,
        tracer: trace.Tracer,
        instruments: Instruments,
        attributes: dict[str, str | int],
        log: LogFile | None,
        *,
        encrypted_names: bool,
    ) -> None:
        self.tracer, self.instruments, self.attributes = tracer, instruments, attributes
        self.encrypted_names = encrypted_names
        # The instruments look at the log for as long as this observer exists.
        self._log = log
        if log is not None:
            instruments.watch(log)

    def observe(
        self, operation: Callable[..., object], args: Sequence[object]
    ) -> ObservedOperation:
        """An operation that is about to start."""
        return ObservedOperation(self, operation, args)


class ObservedOperation:
    """One operation: a span while it runs, which is the parent of spans within it."""

    __slots__ = (
        "_attributes",
        "_began",
        "_has_names",
        "_measures",
        "_observer",
        "_operation",
        "_span",
        "_token",
        "_traceparent",
    )

    def __init__(
        self,
        observer: StoreObserver,
        operation: Callable[..., object],
        args: Sequence[object],
    ) -> None:
        self._observer, self._operation = observer, operation
        # Until it is known whether the store has a key.
        self._has_names = observer.encrypted_names
        self._measures = Measures()
        self._measures.named = thread_in(operation, args)
        self._attributes: Attributes = {
            **observer.attributes,
            "db.operation.name": operation_name(operation, args),
        }
        collection = collection_of(operation)
        if collection is not None:
            self._attributes["db.collection.name"] = collection
        self._traceparent: str | None = None

    def __enter__(self) -> Self:
        has_parent = trace.get_current_span().get_span_context().is_valid
        self._span = self._observer.tracer.start_span(
            self._span_name(),
            kind=SpanKind.CLIENT,
            attributes=self._attributes,
            # The text of an error may quote what was saved.
            record_exception=False,
            set_status_on_exception=False,
        )
        if has_parent:
            self._traceparent = traceparent_of(self._span.get_span_context())
        within = trace.set_span_in_context(self._span)
        self._token: Token[trace_context.Context] = trace_context.attach(within)
        self._began = time.perf_counter()
        return self

    def _span_name(self) -> str:
        attributes = self._attributes
        names = (attributes["db.operation.name"], attributes.get("db.collection.name"))
        return " ".join(str(name) for name in names if name)

    def context(self, context: Context) -> Context:
        """The context with the trace, over a backend that is measured."""
        self._has_names = context.keys is None or self._observer.encrypted_names
        return replace(
            context,
            backend=MeasuringBackend(context.backend, self._measures),
            traceparent=self._traceparent,
        )

    def finish(self, result: object) -> None:
        """Take note of the checkpoint that an operation returned."""
        if isinstance(result, Checkpoint):
            self._measures.checkpoint = result

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        seconds = time.perf_counter() - self._began
        trace_context.detach(self._token)
        failure = failure_of(error)
        if self._span.is_recording():
            self._span.set_attributes(self._measured() | failure)
            if error is not None:
                self._span.set_status(StatusCode.ERROR)
        # Ended first: what it took to count is not part of the operation.
        self._span.end()
        self._count(seconds, failure)

    def _measured(self) -> Attributes:
        measures, found = self._measures, Attributes()
        found |= self._identities()
        if measures.checkpoint is not None:
            found["holdfast.checkpoint"] = measures.checkpoint.id
            found["holdfast.step"] = measures.checkpoint.step
        if measures.conflicts:
            found["holdfast.conflicts"] = len(measures.conflicts)
        if measures.shared:
            found["holdfast.bytes.logical"] = measures.logical
            found["holdfast.bytes.stored"] = measures.stored
            found["holdfast.commit.size"] = measures.shared
        if measures.seconds is not None:
            found["holdfast.commit.sync_duration"] = measures.seconds
        return found

    def _identities(self) -> Attributes:
        measures, thread = self._measures, self._measures.thread
        if thread is None or not self._has_names:
            return {}
        named = {
            "holdfast.thread": thread,
            "gen_ai.conversation.id": conversation_of(thread, self._operation),
            "gen_ai.agent.id": agent_of(thread) or measures.agent,
        }
        return {name: value for name, value in named.items() if value}

    def _count(self, seconds: float, failure: Attributes) -> None:
        instruments, measures = self._observer.instruments, self._measures
        attributes = self._attributes
        instruments.duration.record(seconds, attributes | failure)
        if measures.shared:
            instruments.logical.add(measures.logical, attributes)
            instruments.stored.add(measures.stored, attributes)
        for code in measures.conflicts:
            status: Attributes = {"db.response.status_code": code}
            instruments.conflicts.add(1, attributes | status)
        if failure.get("db.response.status_code") == INTERRUPTED:
            instruments.unknown.add(1, attributes)


def failure_of(error: BaseException | None) -> Attributes:
    """The kind of an error, and its code if it is one of ours; never its text."""
    if error is None:
        return {}
    kind = type(error)
    found: Attributes = {"error.type": f"{kind.__module__}.{kind.__qualname__}"}
    if isinstance(error, HoldfastError):
        found["db.response.status_code"] = error.code
    return found


def traceparent_of(span: SpanContext) -> str | None:
    """A span as the header ``traceparent`` of W3C Trace Context."""
    if not span.is_valid:
        return None
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"
