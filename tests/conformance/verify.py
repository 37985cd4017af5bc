"""Verifying: what is reported."""

from __future__ import annotations

from holdfast.testing.conformance.cases import LONG, Cases


class VerifyTests(Cases):
    """Checking that everything is as it was written."""

    def test_verifying_reports_its_progress(self) -> None:
        self.filled(3)
        self.filled(2, "other")
        reported: list[tuple[int, int]] = []

        found = self.store.verify(progress=lambda done, of: reported.append((done, of)))

        assert found.ok
        assert reported[0] == (0, 5)
        assert reported[-1] == (5, 5)

    def test_a_quick_look_counts_the_same(self) -> None:
        self.thread().save({"text": LONG})

        assert self.store.verify(quick=True) == self.store.verify()
