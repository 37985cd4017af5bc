"""Inner names of `_engine`, the operations over the port."""

from holdfast._engine.cache import Cache
from holdfast._engine.effects.settle import CallEnd, settle
from holdfast._engine.packing.forms import (
    ALONE,
    BLOCK,
    PACKED_BLOCK,
    WITH_DICTIONARY,
    Opener,
)
from holdfast._engine.packing.layer import Packing
from holdfast._engine.records.transcript_tail import newest
from holdfast._engine.scopes.inspection import ScopedInspection
from holdfast._engine.scopes.layer import ScopeLayer
from holdfast._engine.scopes.queries import _ANSWERS as SCOPE_ANSWERS
from holdfast._engine.search import index, query
from holdfast._engine.search.text import FORM, STRETCH, snippet
from holdfast._engine.threads import drafts, removal_family
from holdfast._engine.threads.journal_keys import RESERVED
from holdfast._engine.threads.save import SaveOptions
from holdfast._engine.upkeep import copy as copy_store
from holdfast._engine.upkeep import (
    family_records,
    prune_plans,
)
from holdfast._engine.upkeep.copy import LATEST
from holdfast._engine.upkeep.erase import erase
from holdfast._engine.upkeep.erasure import ErasureRequest
