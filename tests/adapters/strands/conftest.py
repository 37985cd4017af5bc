"""Stores on every backend for the tests of this adapter."""

import pytest

import holdfast


@pytest.fixture
def store(place):
    address, options = place
    with holdfast.open(address, **options) as store:
        yield store


@pytest.fixture
def filed(tmp_path):
    """A store in a file, where the backend makes no difference."""
    with holdfast.open(tmp_path / "agents.db") as store:
        yield store
