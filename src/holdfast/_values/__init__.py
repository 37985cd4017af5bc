"""Pure values: records, references, the codec and the rope; no input, no output."""

from holdfast._values.lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
