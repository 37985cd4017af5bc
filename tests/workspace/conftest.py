from __future__ import annotations

import pytest

import holdfast
from holdfast.workspace import Workspace


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.fixture
def workspace(folder):
    return Workspace(folder)


@pytest.fixture
def threads():
    """Threads of one store by name."""
    with holdfast.open(":memory:") as store:
        yield store.thread


@pytest.fixture
def thread(threads):
    return threads("agent")
