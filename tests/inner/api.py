"""Inner names of `_api`, stores and threads."""

from holdfast._api import declared, explore
from holdfast._api.address import shown_address, store_address
from holdfast._api.declared import (
    HistoryOptions,
    ImportOptions,
    LinesOptions,
    ListOptions,
    MergeOptions,
    SearchOptions,
    StartOptions,
    ThreadsOptions,
)
from holdfast._api.explore import ExploreOptions
from holdfast._api.open import Opening
from holdfast._api.options import context_over
from holdfast._api.plugins import write_key_file
from holdfast._api.runner import AsyncRunner, Runner
