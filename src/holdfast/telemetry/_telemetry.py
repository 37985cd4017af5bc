"""Telemetry: the providers that the spans and metrics of stores go to."""

from __future__ import annotations

import contextlib
from functools import cache
from urllib.parse import parse_qs, unquote, urlsplit

from opentelemetry import metrics, trace

from holdfast import __version__
from holdfast._api.address import StoreAddress
from holdfast._values.arguments import checked_flag, kind_of
from holdfast.errors import Unstorable
from holdfast.telemetry._instruments import Instruments, LogFile
from holdfast.telemetry._operation import StoreObserver

SCOPE = "holdfast"
# The version of the semantic conventions that the names of the attributes come from.
CONVENTIONS = "https://opentelemetry.io/schemas/1.37.0"
# Systems that the conventions do not name get a name that begins with ours.
SYSTEMS = {"dir": "holdfast.directory"}
MEMORY = ":memory:"


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
        path = _log_of(address)
        log = LogFile(path, attributes) if path is not None else None
        return StoreObserver(
            self._tracer,
            self._instruments,
            attributes,
            log,
            encrypted_names=self._encrypted_names,
        )


@cache
def default() -> Telemetry:
    """The telemetry of the global providers, also of those that are set later."""
    return Telemetry()


def _check(provider: object, kind: type, name: str) -> None:
    if provider is not None and not isinstance(provider, kind):
        text = f"must be a {kind.__name__} of OpenTelemetry, not {kind_of(provider)}"
        raise Unstorable(name, text)


def attributes_of(address: StoreAddress, schema: str) -> dict[str, str | int]:
    """The attributes that all spans and metrics of a store have in common.

    Never a user name, a password or an option of the address.
    """
    system = SYSTEMS.get(address.scheme, address.scheme)
    found: dict[str, str | int] = {"db.system.name": system}
    if address.scheme == "postgresql":
        return found | _server(address.name, schema)
    if address.scheme in {"sqlite", "dir"}:
        found["db.namespace"] = address.name
    return found


def _server(url: str, schema: str) -> dict[str, str | int]:
    parts = urlsplit(url)
    options = parse_qs(parts.query)
    database = unquote(parts.path.strip("/")) or options.get("dbname", [""])[0]
    found: dict[str, str | int] = {"db.namespace": f"{database}|{schema}".lstrip("|")}
    host = parts.hostname or options.get("host", [""])[0]
    if host:
        found["server.address"] = host
    # An address of several servers has no port that could be read as a number.
    with contextlib.suppress(ValueError):
        port = parts.port or int(options.get("port", ["0"])[0])
        found |= {"server.port": port} if port else {}
    return found


def _log_of(address: StoreAddress) -> str | None:
    """The file of the write-ahead log, ``None`` for a store without one."""
    if address.scheme != "sqlite" or address.name == MEMORY:
        return None
    return f"{address.name}-wal"
