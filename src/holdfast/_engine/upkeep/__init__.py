"""Operations on a whole store: prune, verify, salvage, copy, export."""

from holdfast._values.lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
