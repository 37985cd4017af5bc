"""Operations on threads and their checkpoints."""

from holdfast._values.lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
