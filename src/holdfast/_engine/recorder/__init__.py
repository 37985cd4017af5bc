"""The operations of a recorder: what it holds in memory, stores and calls once."""

from holdfast._values.lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
