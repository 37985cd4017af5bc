"""Savers for the tests of the LangGraph adapter."""

import langgraph.runtime
import pytest

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver

# `once` needs LangGraph 1.2.
if not hasattr(langgraph.runtime, "RunControl"):
    collect_ignore = [
        "test_decisions.py",
        "test_killed.py",
        "test_lines.py",
        "test_once.py",
        "test_random_histories.py",
    ]


@pytest.fixture
def saver(place):
    """A saver on each backend; the store is verified after the test."""
    url, options = place
    with holdfast.open(url, **options) as store:
        yield HoldfastSaver(store)

        assert store.verify().problems == ()


@pytest.fixture
def quick_store():
    with holdfast.open(":memory:") as store:
        yield store


@pytest.fixture
def quick(quick_store):
    """A saver in memory, for tests that do not depend on the backend."""
    return HoldfastSaver(quick_store)
