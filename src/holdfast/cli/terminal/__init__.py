"""What a terminal shows: output, tables, colours, graphs, progress, pager."""

from holdfast._values.lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
