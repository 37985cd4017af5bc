"""Listings: what is decided above the pages that a backend gives."""

from __future__ import annotations

from decimal import Decimal

from holdfast.testing.conformance.cases import Cases, untyped
from holdfast.testing.conformance.listings import HOSTILE, names


class ListedRecordTests(Cases):
    """Checkpoints and threads in listings."""

    def test_records_of_a_history_hold_no_state(self) -> None:
        text = "x" * 100_000
        chat = self.thread()
        chat.save({"text": text})

        [record] = chat.history()

        assert record.size >= len(text)
        assert len(record.manifest) < 1000

    def test_threads_are_filtered_by_metadata(self) -> None:
        self.store.thread("a", metadata={"lang": "en", "tags": ["x"]}).save({})
        self.store.thread("b", metadata={"lang": "de", "tags": ["x"]}).save({})
        self.store.thread("c").save({})
        store = self.store

        assert names(store.threads(metadata={"lang": "de"})) == ["b"]
        assert names(store.threads(metadata={"tags": ["x"]})) == ["b", "a"]
        assert names(store.threads(metadata={"lang": "en", "tags": ["x"]})) == ["a"]
        assert names(store.threads(metadata={"lang": "en", "tags": []})) == []
        assert names(store.threads(metadata={"other": None})) == []
        assert names(store.threads(metadata={})) == ["c", "b", "a"]

    def test_metadata_are_compared_as_python_compares_them(self) -> None:
        equal = [1, 1.0, True, Decimal(1)]
        for n, value in enumerate([*equal, 0, -0.0, 12, 10**16, 1e16, "1", None]):
            self.store.thread(f"{n}", metadata={"a": 0, "v": value}).save({})
        [mixed] = untyped({1: 2, "v": "1"})
        self.store.thread("mixed", metadata=mixed).save({})
        nested = {"x": 1, "y": ["ü\n"]}
        self.store.thread("nested", metadata={"v": nested}).save({})

        def found(value: object) -> list[str]:
            return names(self.store.threads(metadata={"v": value}))

        assert [found(value) for value in equal] == [["3", "2", "1", "0"]] * 4
        assert found(0) == found(False) == found(0.0) == ["5", "4"]
        assert found(12.0) == found(Decimal(12)) == ["6"]
        assert found(10**16) == found(1e16) == ["8", "7"]
        assert found("1") == ["mixed", "9"]
        assert found(None) == ["10"]
        assert found({"y": ["ü\n"], "x": True}) == ["nested"]
        assert found(2) == found(float("nan")) == []

    def test_forks_are_listed_like_any_other(self) -> None:
        self.filled(2)
        self.thread().fork("fork")

        assert names(self.store.threads()) == ["fork", "chat"]

    def test_marks_of_any_text_are_references(self) -> None:
        chat = self.thread()
        for name in HOSTILE:
            saved = chat.save({}, label=name, tags=[name])
            assert chat.get(f"label:{name}") == chat.get(f"tag:{name}") == saved
