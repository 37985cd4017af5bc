"""Archives: equal content gives equal bytes, and an import brings everything back."""

from __future__ import annotations

import io
from datetime import timedelta

from holdfast._api.open import open as open_another
from holdfast._api.store import Store
from holdfast._engine.context import Context
from holdfast._engine.upkeep.copy import copy
from holdfast.errors import Conflict, Corrupt
from holdfast.retention import Retention
from holdfast.testing.conformance.bridge import finished
from holdfast.testing.conformance.cases import LONG, Cases, raises


async def _copied(target: Context, source: Context, *, update: bool) -> None:
    await copy(source, target, update=update)


def exported(store: Store, *threads: str) -> bytes:
    """A store, or some of its threads, as an archive."""
    file = io.BytesIO()
    store.export_to(file, threads=threads or None)
    return file.getvalue()


class ArchiveCases(Cases):
    """Fills the tested store, and another one in memory with the same content."""

    def _lived(self, store: Store) -> None:
        """Make threads, forks, marks, a journal and moves, and remove some of them."""
        chat = store.thread("chat", owner="ann", metadata={"k": [1]})
        chat.save({"messages": [LONG], "n": 1}, label="first", tags=["a", "b"])
        chat.append(messages=["more", LONG])
        other = store.thread("other")
        other.save([LONG])
        chat.save({"messages": [LONG, "x"], "n": 2}, metadata={"by": "me"})
        chat.record("call", {"refunded": 129})
        chat.record("step", LONG, checkpoint=chat.get("@1"))
        chat.rewind("@1")
        fork = chat.fork("what if")
        fork.save({"messages": [LONG, "else"]})
        fork.fork("deeper", at="@~1").save({"n": 3})
        other.save({"n": 2})
        fork.delete()
        store.thread("gone").save({"text": LONG})
        store.thread("gone").delete()
        store.thread("noted").record("only", "a journal")
        store.prune(Retention(last=1))

    def _elsewhere(self) -> Store:
        """A store in memory with the same content."""
        self.setup_method_again()
        store = open_another(":memory:", clock=self.clock, new_id=self.new_id)
        self._lived(store)
        return store

    def setup_method_again(self) -> None:
        """Set the clock and the ids back to their beginning."""
        opened = self._opened
        self.setup_method()
        self._opened = opened


class ArchiveTests(ArchiveCases):
    """An export can be imported into any store, and its content stays the same."""

    def test_equal_content_gives_equal_bytes_on_every_backend(self) -> None:
        self._lived(self.store)
        ours = exported(self.store)

        with self._elsewhere() as other:
            assert exported(other) == ours

    def test_an_archive_does_not_change_with_time_or_upkeep(self) -> None:
        self._lived(self.store)
        before = exported(self.store)
        self.clock.advance(timedelta(days=400))
        self.store.compact()

        assert exported(self.store) == before

    def test_an_import_beside_others_keeps_everything(self) -> None:
        with self._elsewhere() as other:
            archive = exported(other)
            digests = [c.digest for c in other.thread("chat").history(all=True)]
            moves = [(m.kind, m.target) for m in other.thread("chat").moves()]
        self.filled(3, "mine")

        imported = self.store.import_archive(io.BytesIO(archive))

        chat = self.thread()
        assert set(imported.threads) == {"chat", "other", "deeper", "noted"}
        assert exported(self.store, "chat", "other", "noted") == archive
        assert [c.digest for c in chat.history(all=True)] == digests
        assert [(m.kind, m.target) for m in chat.moves()] == moves
        assert chat.recorded("call") == {"refunded": 129}
        assert self.thread("noted").recorded("only") == "a journal"
        assert self.thread("mine").step == 3
        assert self.store.verify().ok

    def test_what_was_imported_goes_on(self) -> None:
        with self._elsewhere() as other:
            self.store.import_archive(io.BytesIO(exported(other)))
        chat = self.thread()

        chat.append(messages=["after"])
        chat.fork("new").save({"n": 9})

        assert chat.load()["messages"][-1] == "after"
        assert self.thread("new").load() == {"n": 9}
        assert self.thread("deeper").load() == {"n": 3}
        assert self.store.verify().ok

    def test_a_thread_with_other_content_is_a_conflict(self) -> None:
        with self._elsewhere() as other:
            archive = exported(other)
        self.thread("other").save({"n": "mine"})
        before = exported(self.store)

        with raises(Conflict, "thread_exists") as refused:
            self.store.import_archive(io.BytesIO(archive))

        assert refused.error.thread == "other"
        assert exported(self.store) == before

    def test_a_name_that_was_deleted_is_free_for_an_import(self) -> None:
        self.filled(1, "chat")
        self.thread("chat").delete()
        with self._elsewhere() as other:
            self.store.import_archive(io.BytesIO(exported(other)))

        assert self.thread("chat").load()["n"] == 1

    def test_a_damaged_archive_brings_nothing(self) -> None:
        with self._elsewhere() as other:
            archive = exported(other)
        for wrong in (archive[:-1], archive[: len(archive) // 2], archive + b"x"):
            with raises(Corrupt):
                self.store.import_archive(io.BytesIO(wrong))

        assert list(self.store.threads()) == []
        assert self.store.stats().segments == 0


class CopyTests(ArchiveCases):
    """A copy has the numbers of its original, and refuses late writers as it does."""

    def _copy_from(self, source: Store, *, update: bool = False) -> None:
        """Copy a store in memory into the one that is tested."""
        run = self.store.runner.run
        finished(run(_copied, source.runner.context, update=update))

    def _seen(self, store: Store) -> object:
        """Threads, checkpoints, moves and journals of a store, with their numbers."""
        records = store.threads().items
        threads = [store.thread(record.id) for record in records]
        saved = [c for thread in threads for c in thread.history(None, all=True)]
        return (
            [(r.id, r.owner, r.metadata, r.forked_from, r.changed) for r in records],
            [(c.id, c.seq, c.parent, c.digest, c.label, c.tags) for c in saved],
            [store.load(checkpoint) for checkpoint in saved],
            [(thread.moves(None).items, thread.journal()) for thread in threads],
        )

    def test_a_copy_has_everything_with_its_numbers(self) -> None:
        with self._elsewhere() as source:
            self._copy_from(source)
            first = self._seen(self.store)
            self._copy_from(source)

            assert first == self._seen(source) == self._seen(self.store)
        with raises(Conflict, "thread_deleted"):
            self.thread("gone").save({})
        self.thread().append(messages=["after"])
        assert self.thread().load()["messages"][-1] == "after"
        assert self.store.verify().ok

    def test_a_copy_is_brought_up_to_date(self) -> None:
        with self._elsewhere() as source:
            self._copy_from(source)
            source.thread("chat").rewind("@1")
            source.thread("chat").append(messages=["newer", LONG])
            source.thread("deeper").record("k", 1)
            source.thread("other").delete()
            source.thread("new").save({"n": 1})

            self._copy_from(source, update=True)

            assert self._seen(self.store) == self._seen(source)
        assert self.store.verify().ok
