"""Inner names of `_api`, stores and threads."""

from holdfast._api import declared, explore
from holdfast._api.address import shown_address, store_address
from holdfast._api.agents import Agents, AsyncAgents
from holdfast._api.autosave import AsyncAutoCheckpoints, AutoCheckpoints
from holdfast._api.branches import AsyncThreadBranches, ThreadBranches
from holdfast._api.conversations import AsyncConversations, Conversations
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
from holdfast._api.documents import AsyncDocuments, Documents
from holdfast._api.explore import ExploreOptions
from holdfast._api.open import Opening
from holdfast._api.options import context_over
from holdfast._api.parts import AsyncThreadParts, ThreadParts
from holdfast._api.runner import AsyncRunner, Runner
from holdfast._api.transaction import StreamChange, ThreadChange, Transaction
