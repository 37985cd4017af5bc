"""The sync and the async API: stores, threads and records as callers use them."""

from holdfast._values.lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
