"""Telemetry that ends in memory, for tests that look at what a store exports."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span

from holdfast.telemetry import Telemetry


class Exported:
    """Providers of their own, not the global ones, and what was exported to them."""

    def __init__(self, **options: Any) -> None:
        self._spans, self._metrics = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.telemetry = Telemetry(
            self.tracers, MeterProvider([self._metrics]), **options
        )

    @contextlib.contextmanager
    def trace(self, name: str = "agent") -> Iterator[Span]:
        """A span of the program that uses the store."""
        with self.tracers.get_tracer("program").start_as_current_span(name) as span:
            yield span

    def spans(self, name: str = "") -> list[Any]:
        """The spans of stores whose operation has a name, in the order they ended."""
        return [
            span
            for span in self._spans.get_finished_spans()
            if span.instrumentation_scope.name == "holdfast"
            and name in ("", span.attributes["db.operation.name"])
        ]

    def span(self, name: str) -> Any:
        """The only span of an operation."""
        [found] = self.spans(name)
        return found

    def names(self) -> list[str]:
        """The names of all spans of stores."""
        return [span.name for span in self.spans()]

    def points(self, metric: str) -> list[Any]:
        """The data points of a metric."""
        found = self._metrics.get_metrics_data()
        return [
            point
            for resource in (found.resource_metrics if found else ())
            for scope in resource.scope_metrics
            for each in scope.metrics
            if each.name == metric
            for point in each.data.data_points
        ]

    def values(self, metric: str, *attributes: str) -> Mapping[Any, Any]:
        """The values of a counter or gauge, by some of the attributes."""
        return {
            tuple(point.attributes.get(name) for name in attributes): point.value
            for point in self.points(metric)
        }

    def text(self) -> str:
        """Everything that was exported, as text."""
        spans = [span.to_json() for span in self._spans.get_finished_spans()]
        found = self._metrics.get_metrics_data()
        return "\n".join([*spans, found.to_json() if found else ""])
