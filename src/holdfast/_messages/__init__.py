"""Transcripts in every provider's shape, as pure values."""

from holdfast._values.lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
