"""The layer of a scope lets nothing of the port pass by itself."""

from __future__ import annotations

from holdfast import _port
from holdfast._engine.scopes.inspection import ScopedInspection
from holdfast._engine.scopes.layer import ScopeLayer
from holdfast._engine.scopes.queries import _ANSWERS
from holdfast._port.layer import InspectionLayer, Layer

# What says nothing about records.
PASSED_ON = {"blocking", "over", "ready", "using"}
VIEW_PASSED_ON = {"close", "moment"}
# A scope has no index for searching, and joins nothing.
NEVER_ASKED = {
    _port.Candidates,
    _port.Outdated,
    _port.OutdatedCount,
    _port.Scattered,
    _port.SegmentSizes,
}


def public(kind):
    return {name for name in vars(kind) if not name.startswith("_")}


def test_every_verb_is_the_scope_s_own():
    assert public(Layer) - public(ScopeLayer) == PASSED_ON
    assert public(InspectionLayer) - public(ScopedInspection) == VIEW_PASSED_ON


def test_every_query_has_an_answer():
    queries = {*_port.Query.__subclasses__()}

    assert queries == {*_ANSWERS, *NEVER_ASKED}
