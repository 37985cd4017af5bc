"""Compression: what is decided above the segments."""

from __future__ import annotations

from holdfast.testing.conformance.cases import LONG, Cases


class CompressedValueTests(Cases):
    """``compress=True`` makes values smaller and changes nothing else."""

    def test_what_was_compressed_comes_back(self) -> None:
        chat = self.compressed().thread("chat")
        for n in range(150):
            chat.append(m=[{"role": "user", "n": n, "content": LONG}])
        chat.save({**chat.load(), "text": LONG * 50})

        loaded = chat.load()

        assert [message["n"] for message in loaded["m"]] == list(range(150))
        assert loaded["text"] == LONG * 50

    def test_a_compressed_store_is_smaller(self) -> None:
        store = self.compressed()
        chat = store.thread("chat")
        for n in range(150):
            chat.append(m=[{"role": "user", "n": n, "content": LONG}])

        assert store.stats().stored_bytes < 0.5 * chat.get().size

    def test_what_cannot_be_compressed_comes_back(self) -> None:
        store = self.compressed()
        same, tiny = store.thread("same"), store.thread("tiny")
        for n in range(100):
            same.save({"bytes": bytes(2000)})
            same.append(m=["x" * 800])
            tiny.append(m=[n], text=["y" * 300])

        assert same.load()["bytes"] == bytes(2000)
        assert tiny.load() == {"m": [*range(100)], "text": ["y" * 300] * 100}
