"""How segments are stored: compressed or as they are, alone or many in one block."""

from holdfast._values.lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
