"""Tool calls that are made once, the ledger of their effects, and grants."""

from holdfast._values.lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
