# ruff: noqa: PLR2004 - a test states its numbers where it uses them
"""Retention: what a policy keeps, and what a prune leaves behind."""

from __future__ import annotations

import warnings
from datetime import timedelta
from hashlib import sha512

from holdfast._port import Pruned
from holdfast.errors import Conflict, NotFound
from holdfast.retention import Retention, Thin
from holdfast.testing._cases import LONG, Cases, steps
from holdfast.testing._raises import raises

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


class RetentionTests(Cases):
    """Which checkpoints and threads survive."""

    def kept(self, policy: Retention, name: str = "chat") -> list[int]:
        """The steps that are left of a thread after pruning."""
        self.store.prune(policy)
        return steps(self.thread(name).history(all=True))

    def test_an_empty_policy_removes_nothing(self) -> None:
        self.filled(5)
        self.clock.advance(timedelta(days=10_000))

        assert self.store.prune(Retention()) == Pruned()
        assert self.thread().step == 5

    def test_the_last_ones_are_kept(self) -> None:
        self.filled(10)

        assert self.kept(Retention(last=3)) == [10, 9, 8]

    def test_the_last_ones_are_those_saved_last_whatever_the_clock_says(self) -> None:
        chat = self.thread()
        for _ in range(5):
            chat.save({})
            self.clock.advance(-HOUR)

        assert self.kept(Retention(last=2)) == [5, 4]

    def test_what_is_young_enough_is_kept(self) -> None:
        chat = self.thread()
        for _ in range(6):
            self.clock.advance(DAY)
            chat.save({})

        assert self.kept(Retention(within=2 * DAY)) == [6, 5, 4]

    def test_an_endless_age_keeps_everything(self) -> None:
        self.filled(3)
        self.clock.advance(timedelta(days=100_000))

        policy = Retention(within=timedelta.max, idle=timedelta.max)

        assert self.store.prune(policy) == Pruned()

    def test_one_of_every_hour_day_or_week_is_kept(self) -> None:
        chat = self.thread()
        for _ in range(24 * 4):
            chat.save({})
            self.clock.advance(HOUR / 2)

        assert self.kept(Retention(thin=Thin(hourly=3, daily=2))) == [96, 94, 92, 48]

    def test_the_newest_of_a_week_is_kept(self) -> None:
        chat = self.thread()
        for _ in range(15):  # from a Wednesday to the one after the next
            chat.save({})
            self.clock.advance(DAY)

        assert self.kept(Retention(thin=Thin(weekly=5))) == [15, 12, 5]

    def test_what_any_rule_keeps_is_kept(self) -> None:
        chat = self.thread()
        for _ in range(10):
            self.clock.advance(DAY)
            chat.save({})
        policy = Retention(last=2, within=3 * DAY, thin=Thin(daily=5))

        assert self.kept(policy) == [10, 9, 8, 7, 6]

    def test_the_head_is_kept_wherever_it_is(self) -> None:
        saved = self.filled(5)
        self.thread().rewind(saved[1])

        assert self.kept(Retention(last=1)) == [5, 2]
        assert self.thread().load() == {"n": 2}

    def test_labelled_and_tagged_ones_are_kept(self) -> None:
        saved = self.filled(6)
        self.thread().label("before refund", saved[1])
        self.thread().tag("risky", ref=saved[3])

        assert self.kept(Retention(last=1)) == [6, 4, 2]

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

    def test_each_thread_keeps_its_own_last_ones(self) -> None:
        self.filled(4, "a")
        self.filled(2, "b")

        self.store.prune(Retention(last=3))

        assert steps(self.thread("a").history()) == [4, 3, 2]
        assert steps(self.thread("b").history()) == [2, 1]

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

    def test_each_owner_keeps_the_threads_used_last(self) -> None:
        for owner in ("me", "you"):
            for n in range(4):
                self.store.thread(f"{owner} {n}", owner=owner).save({})
        self.filled(1, "nobody's")
        self.thread("me 0").save({})

        pruned = self.store.prune(Retention(threads_per_owner=2))

        assert pruned.threads == 4
        left = {thread.id for thread in self.store.threads()}
        assert left == {"me 0", "me 3", "you 2", "you 3", "nobody's"}

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

    def test_one_prune_removes_at_most_the_share_it_may(self) -> None:
        self.filled(10)

        with raises(Conflict, "too_much"):
            self.store.prune(Retention(last=4, at_most=0.5))

        assert len(self.thread().history()) == 10
        assert self.store.prune(Retention(last=5, at_most=0.5)).checkpoints == 5

    def test_a_clock_that_jumped_cannot_empty_the_store(self) -> None:
        for n in range(10):
            self.filled(1, f"{n}")
        self.clock.advance(timedelta(days=3650))

        with raises(Conflict, "too_much"):
            self.store.prune(Retention(idle=30 * DAY, at_most=0.5))
        with raises(Conflict, "too_much"):
            self.store.prune(Retention(threads_per_owner=1, idle=DAY, at_most=0))

        assert self.store.stats().threads == 10


class PruneTests(Cases):
    """What a prune leaves is complete."""

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

    def test_a_rewound_branch_goes_when_nothing_keeps_it(self) -> None:
        saved = self.filled(4)
        chat = self.thread()
        chat.rewind(saved[0])
        chat.save({"n": "new"})

        self.store.prune(Retention(last=1))

        assert [c.step for c in chat.history(all=True)] == [2]
        with raises(NotFound):
            chat.load(saved[3])

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
        for n in range(40):
            chat.save({"text": "".join(texts[n * 50 : n * 50 + 50])})
        self.store.prune(Retention(last=1))
        before = self.store.stats().file_bytes

        self.store.compact()

        assert self.store.stats().file_bytes < before / 2
        assert chat.load() == {"text": "".join(texts[-50:])}


class HousekeepingTests(Cases):
    """A policy of the store itself, applied after saves."""

    def test_a_stores_own_policy_is_applied_after_saves(self) -> None:
        store = self.open(retention=Retention(last=3), prune_every=timedelta(0))
        chat = store.thread("chat")
        for _ in range(10):
            chat.save({})

        assert steps(chat.history()) == [10, 9, 8]

    def test_a_policy_of_the_store_is_applied_only_so_often(self) -> None:
        store = self.open(retention=Retention(last=1), prune_every=HOUR)
        chat = store.thread("chat")
        for _ in range(5):
            chat.save({})
        assert steps(chat.history()) == [5, 4, 3, 2, 1]

        self.clock.advance(HOUR)
        chat.save({})

        assert steps(chat.history()) == [6]

    def test_a_policy_of_the_store_is_applied_after_a_clock_went_back(self) -> None:
        store = self.open(retention=Retention(last=1), prune_every=HOUR)
        chat = store.thread("chat")
        chat.save({})
        self.clock.advance(-DAY)
        chat.save({})

        assert steps(chat.history()) == [2]

    def test_what_was_just_saved_is_never_removed(self) -> None:
        policy = Retention(last=1, idle=timedelta(0), threads_per_owner=1)
        store = self.open(retention=policy, prune_every=timedelta(0))
        for n in range(5):
            saved = store.thread(f"{n}", owner="me").save({"n": n})
            assert store.thread(f"{n}").head == saved

        assert store.stats().threads == 1

    def test_a_prune_that_fails_does_not_fail_the_save(self) -> None:
        policy = Retention(last=1, at_most=0.1)
        store = self.open(retention=policy, prune_every=timedelta(0))
        chat = store.thread("chat")
        chat.save({"n": 1})

        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            saved = chat.save({"n": 2})

        assert [w.category for w in warned] == [RuntimeWarning]
        assert (saved.step, chat.head) == (2, saved)
