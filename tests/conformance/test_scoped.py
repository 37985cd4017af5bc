"""The rules of a store in a scope, beside others that use the same names."""

from __future__ import annotations

import pytest

import holdfast
from conformance import ConformanceTests


class TestScopedFile(ConformanceTests):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.url = str(tmp_path / "store.db")
        with holdfast.open(self.url, durability="normal") as store:
            for other in (store, store.scope("other")):
                other.thread("chat", owner="ann").save({"n": 1})
                other.thread("t").append(messages=[{"role": "user", "content": "hi"}])

    def open_store(self, **options):
        return holdfast.open(self.url, scope="acme", **options)
