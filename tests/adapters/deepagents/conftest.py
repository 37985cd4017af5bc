"""Stores on every backend for the tests of this adapter."""

import pytest

import holdfast
from holdfast.adapters.deepagents import HoldfastBackend


@pytest.fixture
def store(place):
    address, options = place
    with holdfast.open(address, **options) as store:
        yield store


@pytest.fixture
def files(store):
    """The files of one thread, on every backend."""
    return HoldfastBackend(store, "notes")


@pytest.fixture
def filed(tmp_path):
    """A store in a file, where the backend makes no difference."""
    with holdfast.open(tmp_path / "agents.db") as store:
        yield store


@pytest.fixture
def notes(filed):
    return HoldfastBackend(filed, "notes")
