"""Telemetry: the providers that the spans and metrics of stores go to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from opentelemetry import metrics, trace

from holdfast import __version__
from holdfast._api.address import StoreAddress
from holdfast._values.arguments import checked_flag, kind_of
from holdfast.errors import Unstorable
from holdfast.telemetry._database import attributes_of, log_of
from holdfast.telemetry._instruments import Instruments, LogFile
from holdfast.telemetry._operation import ObservedOperation

SCOPE = "holdfast"
# The version of the semantic conventions that the names of the attributes come from.
CONVENTIONS = "https://opentelemetry.io/schemas/1.37.0"


class Telemetry:
    """Sends spans and metrics to ``tracer_provider`` and ``meter_provider``.

    By default these are the program's global providers, also if they are set later. One
    telemetry can be used for any number of stores.

    Spans name the thread, the conversation and the agent of an operation; those of a
    store with a key only with ``encrypted_names``.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        *,
        encrypted_names: bool = False,
    ) -> None:
        _check(tracer_provider, trace.TracerProvider, "tracer_provider")
        _check(meter_provider, metrics.MeterProvider, "meter_provider")
        self._encrypted_names = checked_flag(encrypted_names, "encrypted_names")
        self._tracer = trace.get_tracer(
            SCOPE, __version__, tracer_provider, schema_url=CONVENTIONS
        )
        self._instruments = Instruments(
            metrics.get_meter(
                SCOPE, __version__, meter_provider, schema_url=CONVENTIONS
            )
        )

    def observer(self, address: StoreAddress, schema: str) -> StoreObserver:
        """The observer of the operations of one store."""
        attributes = attributes_of(address, schema)
        path = log_of(address)
        log = LogFile(path, attributes) if path is not None else None
        return StoreObserver(
            self._tracer,
            self._instruments,
            attributes,
            log,
            encrypted_names=self._encrypted_names,
        )


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


@cache
def default() -> Telemetry:
    """The telemetry of the global providers, also of those that are set later."""
    return Telemetry()


def _check(provider: object, kind: type, name: str) -> None:
    if provider is not None and not isinstance(provider, kind):
        text = f"must be a {kind.__name__} of OpenTelemetry, not {kind_of(provider)}"
        raise Unstorable(name, text)
