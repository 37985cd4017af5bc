"""The layer of a scope lets nothing of the port pass by itself."""

from __future__ import annotations

from holdfast.backends import (
    Candidates,
    Layer,
    Outdated,
    OutdatedCount,
    Query,
    Scattered,
    SegmentSizes,
)
from inner.engine import SCOPE_ANSWERS, ScopedInspection, ScopeLayer
from inner.port import InspectionLayer

# What says nothing about records.
PASSED_ON = {"blocking", "over", "ready", "using"}
VIEW_PASSED_ON = {"close", "moment"}
# A scope has no index for searching, and joins nothing.
NEVER_ASKED = {
    Candidates,
    Outdated,
    OutdatedCount,
    Scattered,
    SegmentSizes,
}


def public(kind):
    return {name for name in vars(kind) if not name.startswith("_")}


def test_every_verb_is_the_scope_s_own():
    assert public(Layer) - public(ScopeLayer) == PASSED_ON
    assert public(InspectionLayer) - public(ScopedInspection) == VIEW_PASSED_ON


def test_every_query_has_an_answer():
    queries = {*Query.__subclasses__()}

    assert queries == {*SCOPE_ANSWERS, *NEVER_ASKED}
