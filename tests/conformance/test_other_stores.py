"""The conformance suite on files through the async API, compressed, and on folders."""

import pytest

import holdfast
from conformance import ConformanceTests, SecondApiTests, SmokeTests
from conformance.compression import CompressedValueTests
from holdfast.testing import StoreTests, blocking
from support.effort import THOROUGH


class TestFileAsync(SecondApiTests if THOROUGH else SmokeTests):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.url = str(tmp_path / "store.db")

    def open_store(self, **options):
        return blocking(holdfast.open_async(self.url, **options))


class TestCompressed(StoreTests, CompressedValueTests):
    """What a layer can break."""

    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.url = str(tmp_path / "store.db")

    def open_store(self, **options):
        return holdfast.open(self.url, **({"compress": True} | options))


class TestDirectory(SecondApiTests):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.url = f"dir:{tmp_path}/store"

    def open_store(self, **options):
        return holdfast.open(self.url, **options)


class TestDirectoryAsync(ConformanceTests):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.url = f"dir:{tmp_path}/store"

    def open_store(self, **options):
        return blocking(holdfast.open_async(self.url, **options))
