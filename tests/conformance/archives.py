"""Archives: what is chosen for one, and what is refused."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import holdfast
from holdfast.errors import NotFound, Unstorable
from holdfast.testing._archive import ArchiveCases, exported
from holdfast.testing._raises import raises


class ArchiveSelectionTests(ArchiveCases):
    """What is exported and imported of a store."""

    def test_importing_again_changes_nothing(self) -> None:
        self.filled(1, "mine")
        with self._elsewhere() as other:
            archive = exported(other)
        self.store.import_archive(io.BytesIO(archive))
        before = exported(self.store)

        again = self.store.import_archive(io.BytesIO(archive))

        assert again.threads == ()
        assert set(again.skipped) == {"chat", "other", "deeper", "noted"}
        assert exported(self.store) == before

    def test_a_dry_run_only_looks(self) -> None:
        with self._elsewhere() as other:
            archive = exported(other)

        reported = self.store.import_archive(io.BytesIO(archive), dry_run=True)

        assert reported.checkpoints > 0
        assert list(self.store.threads()) == []

    def test_threads_go_with_all_that_share_their_history(self) -> None:
        self._lived(self.store)

        contents = self.store.export_to(io.BytesIO(), threads=["deeper"])

        assert set(contents.threads) == {"chat", "deeper"}
        with raises(NotFound):
            self.store.export_to(io.BytesIO(), threads=["gone"])

    def test_since_leaves_out_what_is_older_but_for_heads(self) -> None:
        self.filled(3)
        self.thread("old").save({"n": 0})
        self.clock.advance(timedelta(days=2))
        for n in (4, 5):
            self.thread().save({"n": n})
        file = io.BytesIO()

        self.store.export_to(file, since=datetime(2023, 11, 16, tzinfo=UTC))

        with holdfast.open(":memory:") as other:
            other.import_archive(file)
            found = [c.step for c in other.thread("chat").history()]
            assert found == [5, 4]
            assert [t.id for t in other.threads()] == ["chat"]
            assert other.verify().ok
        with raises(Unstorable):
            self.store.export_to(file, since=datetime(2023, 11, 16))  # noqa: DTZ001
