"""Inner names of `_api`, stores and threads."""

from holdfast._api import conversations, explore, keywords, options, plugins, transfer
from holdfast._api.address import shown_address, store_address
from holdfast._api.explore import ExploreOptions
from holdfast._api.keywords import (
    HistoryOptions,
    ListOptions,
    MergeOptions,
    StartOptions,
    ThreadsOptions,
)
from holdfast._api.open import Opening
from holdfast._api.options import context_over
from holdfast._api.plugins import ImportOptions, write_key_file
from holdfast._api.runner import AsyncRunner, Runner
from holdfast._api.transfer import LinesOptions
from holdfast._engine.search import query
from holdfast._engine.search.query import SearchOptions
