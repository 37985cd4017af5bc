"""The metrics of stores."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from weakref import WeakSet

from opentelemetry.metrics import CallbackOptions, Meter, Observation

# The buckets that the conventions ask for, in seconds.
BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)


class LogFile:
    """The write-ahead log of an open store."""

    def __init__(self, path: str, attributes: Mapping[str, str | int]) -> None:
        self.path, self.attributes = path, attributes

    def observation(self) -> Observation | None:
        """The size of the log, ``None`` while there is none."""
        try:
            return Observation(os.stat(self.path).st_size, self.attributes)
        except OSError:
            return None


class Instruments:
    """The instruments of one meter, made once for all stores that use it."""

    def __init__(self, meter: Meter) -> None:
        self.duration = meter.create_histogram(
            "db.client.operation.duration",
            unit="s",
            description="Duration of the operations of stores.",
            explicit_bucket_boundaries_advisory=BUCKETS,
        )
        self.logical = meter.create_counter(
            "holdfast.bytes.logical",
            unit="By",
            description="Bytes of the states that were saved, each as a whole.",
        )
        self.stored = meter.create_counter(
            "holdfast.bytes.stored",
            unit="By",
            description="Bytes that were written for them, and to journals.",
        )
        self.conflicts = meter.create_counter(
            "holdfast.conflicts",
            unit="{conflict}",
            description="Commits that another writer made fail, repeated or not.",
        )
        self.unknown = meter.create_counter(
            "holdfast.effects.unknown",
            unit="{effect}",
            description="Tool calls refused because an earlier outcome is not known.",
        )
        self._lock = threading.Lock()
        self._logs: WeakSet[LogFile] = WeakSet()
        meter.create_observable_gauge(
            "holdfast.log.size",
            [self._log_sizes],
            unit="By",
            description="Size of the write-ahead log of an open SQLite file.",
        )

    def watch(self, log: LogFile) -> None:
        """Report the size of a log for as long as it is referred to elsewhere."""
        with self._lock:
            self._logs.add(log)

    def _log_sizes(self, options: CallbackOptions) -> Iterable[Observation]:
        del options
        with self._lock:
            logs = {log.path: log for log in self._logs}
        sizes = [log.observation() for log in logs.values()]
        return [size for size in sizes if size is not None]
