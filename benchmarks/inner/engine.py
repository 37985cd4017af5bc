"""The inner names of the engine that benchmarks use."""

from holdfast._engine.search import query
from holdfast._engine.search.query import SearchQuery
from holdfast.effects import declaration_of
