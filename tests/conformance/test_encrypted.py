"""The rules of a store over encrypted files and folders."""

from __future__ import annotations

import pytest

import holdfast
from conformance import LayerTests
from holdfast import Unsupported
from holdfast.testing import StoreTests, blocking, raises
from inner.keys import OVERHEAD

KEY = bytes(range(32))


class TestEncryptedFile(LayerTests):
    segment_overhead = OVERHEAD

    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.url = str(tmp_path / "store.db")

    def open_store(self, **options):
        return holdfast.open(self.url, key=KEY, **options)

    def test_a_thread_can_be_described_later(self):
        chat = self.store.thread("chat", owner="a", metadata={"k": 1})
        chat.save({})
        chat.describe(metadata={"k": 2})

        with raises(Unsupported, code="other_owner"):
            chat.describe(owner="b")

        about = chat.about
        assert (about.owner, about.metadata) == ("a", {"k": 2})

    def test_owner_and_metadata_of_the_threads_come_back(self):
        pytest.skip("it changes an owner")


class TestEncryptedFolder(StoreTests):
    """What a backend can break; the rest of the rules is tried over a file."""

    segment_overhead = OVERHEAD

    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.url = f"dir:{tmp_path / 'store'}"

    def open_store(self, **options):
        return blocking(holdfast.open_async(self.url, key=KEY, **options))

    def test_a_thread_can_be_described_later(self):
        pytest.skip("it changes an owner")

    def test_owner_and_metadata_of_the_threads_come_back(self):
        pytest.skip("it changes an owner")
