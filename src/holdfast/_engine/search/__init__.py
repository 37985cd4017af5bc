"""Searching messages, and the index that makes it fast."""

from holdfast._values.lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
