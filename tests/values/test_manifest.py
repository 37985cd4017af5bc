"""Manifests: what they say about the values of a checkpoint."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.errors import Corrupt
from inner.values import decode_manifest, value_of


def test_a_manifest_with_more_runs_than_its_checkpoint_has_is_damaged(memory):
    head = memory.thread("t").append(messages=["x" * 1000])
    assert head.runs

    for read in (decode_manifest, lambda found: value_of(found, "messages")):
        with pytest.raises(Corrupt, match="runs are missing"):
            read(replace(head, runs=()))
