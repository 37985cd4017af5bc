"""Scopes: a part of a store that is a store of its own."""

from holdfast._values.lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
