"""Telemetry by OpenTelemetry: a span and metrics for every operation of a store.

It needs the extra ``otel``, which brings the API of OpenTelemetry only. A store has
telemetry if the program set a provider of tracers before it was opened, or with
``telemetry=True``, or with a `Telemetry` of your own providers::

    holdfast.open("agents.db", telemetry=Telemetry(tracer_provider=provider))

Spans and metrics have names, ids, counts, sizes and durations, and never what is saved.
"""

from holdfast.telemetry._telemetry import Telemetry

__all__ = ["Telemetry"]
