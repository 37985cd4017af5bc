"""Retention: the checkpoints that a policy keeps and that a prune leaves."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha512

from holdfast._port import Pruned
from holdfast.errors import NotFound
from holdfast.retention import Retention
from holdfast.testing.conformance.cases import LONG, Cases, raises, steps

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


class RetentionCases(Cases):
    """Prunes, and lists what is left."""

    def kept(self, policy: Retention, name: str = "chat") -> list[int]:
        """The steps that are left of a thread after pruning."""
        self.store.prune(policy)
        return steps(self.thread(name).history(all=True))


class RetentionTests(RetentionCases):
    """A prune removes the checkpoints that the policy names, and no others."""

    def test_the_last_ones_are_kept(self) -> None:
        self.filled(10)

        assert self.kept(Retention(last=3)) == [10, 9, 8]

    def test_marks_and_fork_points_go_if_the_policy_says_so(self) -> None:
        saved = self.filled(6)
        chat = self.thread()
        chat.label("x", saved[1])
        chat.tag("t", ref=saved[2])
        chat.fork("fork", at=saved[3]).save({"n": "fork"})
        policy = Retention(last=1, labelled=False, tagged=False, forks=False)

        assert self.kept(policy) == [6]
        fork = self.thread("fork")
        assert fork.load() == {"n": "fork"}
        assert steps(fork.history()) == steps(fork.history(all=True)) == [5]

    def test_threads_not_used_for_long_go_as_a_whole(self) -> None:
        self.filled(3, "old")
        self.clock.advance(10 * DAY)
        self.filled(3, "new")

        pruned = self.store.prune(Retention(idle=5 * DAY))

        assert (pruned.threads, pruned.checkpoints) == (1, 3)
        assert self.thread("old").head is None
        assert self.thread("new").step == 3

    def test_a_thread_used_again_is_not_idle(self) -> None:
        self.filled(1)
        self.clock.advance(10 * DAY)
        self.thread().record("still", "here")

        assert self.store.prune(Retention(idle=5 * DAY)) == Pruned()

    def test_a_fork_outlives_a_source_that_was_dropped(self) -> None:
        chat = self.thread()
        for n in range(4):
            chat.append(m=[f"{n} {LONG}"])
        chat.fork("fork", at="@~2")
        self.clock.advance(10 * DAY)
        self.thread("fork").append(m=["fork" + LONG])

        self.store.prune(Retention(idle=5 * DAY))

        assert chat.head is None
        assert self.thread("fork").load() == {
            "m": [f"0 {LONG}", f"1 {LONG}", "fork" + LONG]
        }


class PruneTests(Cases):
    """The checkpoints that a prune leaves are complete."""

    def test_what_is_left_is_as_it_was(self) -> None:
        chat = self.thread()
        for n in range(20):
            chat.save({"m": [f"{m} {LONG}" for m in range(n)], "text": f"{n} {LONG}"})
        chat.label("x", "@~13")

        self.store.prune(Retention(last=2))

        assert steps(chat.history()) == [20, 19, 7]
        for checkpoint in chat.history():
            n = checkpoint.step - 1
            assert chat.load(checkpoint) == {
                "m": [f"{m} {LONG}" for m in range(n)],
                "text": f"{n} {LONG}",
            }

    def test_no_parent_is_left_dangling(self) -> None:
        saved = self.filled(9)
        chat = self.thread()
        chat.rewind(saved[3])
        chat.save({"n": "branch"})
        chat.fork("fork", at=saved[5]).save({"n": "fork"})

        self.store.prune(Retention(last=2))

        for name in ("chat", "fork"):
            for checkpoint in self.thread(name).history(all=True):
                if checkpoint.parent is not None:
                    assert self.store.get(checkpoint.parent).id == checkpoint.parent

    def test_steps_ids_and_digests_stay(self) -> None:
        saved = self.filled(6)
        self.store.prune(Retention(last=2))

        left = self.thread().history()

        assert [(c.id, c.step, c.digest) for c in left] == [
            (c.id, c.step, c.digest) for c in saved[:3:-1]
        ]

    def test_a_dry_run_counts_exactly_what_would_be_removed(self) -> None:
        chat = self.thread()
        for n in range(10):
            chat.append(m=[f"{n} {LONG}"])
            chat.save({**chat.load(), "text": f"{n} {LONG}"})
        chat.fork("fork", at="@~7").append(m=["fork" + LONG])
        self.thread("old").save({"text": LONG})
        self.clock.advance(10 * DAY)
        chat.save(chat.load())
        self.thread("fork").append(m=[])
        policy = Retention(last=2, idle=5 * DAY)
        before = self.store.stats()

        dry = self.store.prune(policy, dry_run=True)

        assert self.store.stats() == before
        assert list(self.store.changes()) == list(self.store.changes())
        assert self.store.prune(policy) == dry
        after = self.store.stats()
        assert dry == Pruned(
            threads=before.threads - after.threads,
            checkpoints=before.checkpoints - after.checkpoints,
            segments=before.segments - after.segments,
            bytes=dry.bytes,
        )
        assert dry.bytes >= before.stored_bytes - after.stored_bytes > 0

    def test_pruning_twice_removes_nothing_more(self) -> None:
        self.filled(6)
        self.store.prune(Retention(last=2))

        assert self.store.prune(Retention(last=2)) == Pruned()

    def test_saving_goes_on_after_a_prune(self) -> None:
        chat = self.thread()
        for n in range(6):
            chat.append(m=[f"{n} {LONG}"])
        self.store.prune(Retention(last=1))

        chat.append(m=["next" + LONG])

        assert chat.step == 7
        assert len(chat.load()["m"]) == 7
        assert steps(chat.history()) == [7, 6]

    def test_undo_after_a_prune_goes_to_what_is_left(self) -> None:
        saved = self.filled(5)
        chat = self.thread()
        chat.label("x", saved[1])
        self.store.prune(Retention(last=1))

        assert chat.undo().id == saved[1].id
        with raises(NotFound):
            chat.undo()
        assert chat.redo().id == saved[4].id

    def test_a_compacted_store_is_smaller_and_whole(self) -> None:
        self.must_be_able("compact")
        chat = self.thread()
        texts = [sha512(b"%d" % n).hexdigest() for n in range(2000)]
        empty = self.store.stats().file_bytes
        for n in range(40):
            chat.save({"text": "".join(texts[n * 50 : n * 50 + 50])})
        self.store.prune(Retention(last=1))
        before = self.store.stats().file_bytes - empty

        self.store.compact()

        assert self.store.stats().file_bytes - empty < before / 2
        assert chat.load() == {"text": "".join(texts[-50:])}
