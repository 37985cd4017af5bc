"""What other systems lack or do differently, as far as this one can show it."""

from __future__ import annotations

import fcntl
import os
import sys

import pytest

import holdfast
from inner.directory import Files
from support.programs import run_program
from support.stores import backend_of

pytestmark = pytest.mark.processes


def test_without_what_windows_lacks_all_is_imported_and_the_basics_run(tmp_path):
    assert run_program("without_posix", tmp_path) == [[]]


@pytest.mark.parametrize(("durability", "is_on"), [("full", 1), ("normal", 0)])
def test_full_durability_asks_macos_to_empty_the_cache_of_the_disk(
    tmp_path, durability, is_on
):
    with holdfast.open(tmp_path / "a.db", durability=durability) as store:
        store.thread("t").save({})
        writer = backend_of(store).database.writer
        asked = [
            writer.execute(f"pragma {name}").fetchone()[0]
            for name in ("fullfsync", "checkpoint_fullfsync")
        ]

    assert asked == [is_on, is_on]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_folder_on_macos_is_synced_through_the_cache_of_the_disk(
    tmp_path, monkeypatch, is_known
):
    asked, synced = [], []

    def flush(descriptor, command):
        asked.append(command)
        if not is_known:  # as on a file system of another machine
            raise OSError
        return 0

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", flush)
    monkeypatch.setattr(os, "fsync", synced.append)
    path = tmp_path / "a"
    path.touch()
    monkeypatch.setattr(sys, "platform", "darwin")

    Files().sync(str(path))

    assert asked == [51]
    assert bool(synced) is not is_known
