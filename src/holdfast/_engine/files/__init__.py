"""The files of a checkpoint: storing a snapshot, reading, comparing, blaming."""

from holdfast._values.lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
