"""A store on every backend, and the SDK's session store over it."""

import pytest

import holdfast
from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore


@pytest.fixture
def store(place):
    address, options = place
    with holdfast.open(address, **options) as store:
        yield store
        assert store.verify().problems == ()


@pytest.fixture
def sessions(store):
    return HoldfastSessionStore(store)


@pytest.fixture
def memory():
    with holdfast.open(":memory:") as store:
        yield store
