"""What telemetry adds to an append: not switched on, without an SDK, and with one."""

from __future__ import annotations

import os
from itertools import cycle

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import holdfast
from benchmarks.contest.workload import Writer
from benchmarks.measure import Bench, Work, alternate
from benchmarks.report import Row
from holdfast.telemetry import Telemetry

OFF = "against telemetry=False"


def telemetry(bench: Bench) -> None:
    """Appends with each choice of telemetry against appends without any."""
    spans = InMemorySpanExporter()
    _compare(bench, f"append, normal, telemetry not switched on, {OFF}", None, 1.02)
    _compare(bench, f"append, normal, telemetry without an SDK, {OFF}", True)
    with_sdk = _exporting(spans)
    _compare(bench, f"append, normal, telemetry exported to memory, {OFF}", with_sdk)
    assert spans.get_finished_spans()


def _exporting(spans: InMemorySpanExporter) -> Telemetry:
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    return Telemetry(tracers, MeterProvider([InMemoryMetricReader()]))


def _compare(
    bench: Bench,
    work: str,
    choice: Telemetry | bool | None,
    limit: float | None = None,
) -> None:
    with (
        bench.place() as folder,
        holdfast.open(
            os.path.join(folder, "ours.db"), durability="normal", telemetry=choice
        ) as ours,
        holdfast.open(
            os.path.join(folder, "off.db"), durability="normal", telemetry=False
        ) as off,
    ):
        rounds = bench.amount(200, 40)
        pair = alternate(_appending(ours), _appending(off), rounds=rounds, block=10)
    a, b = pair.medians
    bench.rows.append(Row(work, pair.text("off"), a / b, limit))


def _appending(store: holdfast.Store) -> Work:
    thread, writer = store.thread("chat"), Writer()
    turns = cycle([writer.turn() for _ in range(100)])
    return lambda: thread.append(messages=next(turns))
