"""Retention: what a policy keeps, and when a store applies its own."""

from __future__ import annotations

import warnings
from datetime import timedelta

from holdfast import Pruned
from holdfast.agents import Agent
from holdfast.conversations import Conversation
from holdfast.errors import Conflict, NotFound, Unstorable
from holdfast.retention import Retention, Thin
from holdfast.testing._cases import Cases, steps, untyped
from holdfast.testing._prune import RetentionCases
from holdfast.testing._raises import raises

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


class PolicyTests(RetentionCases):
    """Which checkpoints and threads survive."""

    def test_an_empty_policy_removes_nothing(self) -> None:
        self.filled(5)
        self.clock.advance(timedelta(days=10_000))

        assert self.store.prune(Retention()) == Pruned()
        assert self.thread().step == 5

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

    def test_each_thread_keeps_its_own_last_ones(self) -> None:
        self.filled(4, "a")
        self.filled(2, "b")

        self.store.prune(Retention(last=3))

        assert steps(self.thread("a").history()) == [4, 3, 2]
        assert steps(self.thread("b").history()) == [2, 1]

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

    def test_pruning_keeps_the_point_where_a_fork_began(self) -> None:
        saved = self.filled(5)
        fork = self.thread().fork("fork", at=saved[1])
        fork.save({"n": "own"})

        self.store.prune(Retention(last=1))

        assert steps(fork.history()) == [3, 2]
        assert fork.load("@~1") == {"n": 2}
        assert self.thread().load() == {"n": 5}

    def test_all_owners_together_keep_so_many_threads(self) -> None:
        for n in range(3):
            self.store.thread(f"you {n}", owner="you").save({})
        self.filled(1, "nobody's")
        for n in range(3):
            self.store.thread(f"me {n}", owner="me").save({})

        # Those of mine that go anyway do not take the place of yours.
        policy = Retention(threads_per_owner=2, threads_in_all=4)
        assert self.store.prune(policy).threads == 3
        left = {thread.id for thread in self.store.threads()}
        assert left == {"me 2", "me 1", "nobody's", "you 2"}

        assert self.store.prune(Retention(threads_in_all=1)).threads == 3
        assert [thread.id for thread in self.store.threads()] == ["me 2"]

    def test_a_policy_for_some_kinds_touches_no_others(self) -> None:
        store = self.store
        for n in range(4):
            store.agents.save(Agent(id="a", name=f"{n}"))
            store.documents.save("notes", f"{n}")
            store.conversations.save(Conversation(id="talk", title=f"{n}"))
            self.clock.advance(DAY)
        self.filled(4)
        of_talks = ("conversation",)

        for policy in (
            Retention(kinds=of_talks, within=DAY),
            Retention(kinds=of_talks, thin=Thin(daily=2)),
            Retention(kinds=of_talks, last=1),
        ):
            store.prune(policy)

        assert store.conversations.thread("talk").step == 4
        assert len(store.conversations.thread("talk").history()) == 1
        assert len(store.agents.thread("a").history()) == 4
        assert len(store.documents.thread("notes").history()) == 4
        assert len(self.thread().history()) == 4


class LimitedPruneTests(RetentionCases):
    """A prune of one thread, one agent, one owner."""

    def test_only_one_thread_is_pruned(self) -> None:
        for name in ("chat", "other"):
            self.filled(5, name)

        dry = self.thread().prune(Retention(last=2), dry_run=True)
        assert (dry.checkpoints, len(self.thread().history())) == (3, 5)
        assert self.thread().prune(Retention(last=2)) == dry

        assert steps(self.thread().history()) == [5, 4]
        assert len(self.thread("other").history()) == 5
        assert self.store.prune(Retention(last=1), thread="other").checkpoints == 4
        assert steps(self.thread().history()) == [5, 4]

    def test_a_thread_that_is_not_there_has_nothing_to_prune(self) -> None:
        self.filled(3)
        policy = Retention(last=1, idle=timedelta(0), at_most=0)

        assert self.thread("nobody").prune(policy) == Pruned()
        assert self.store.prune(policy, agent="nobody") == Pruned()
        assert self.store.prune(policy, owner="nobody") == Pruned()

    def test_only_the_threads_of_one_agent_or_owner_are_pruned(self) -> None:
        for agent in ("a", "b"):
            for owner in ("ann", "bob"):
                thread = self.store.thread(f"{agent}/{owner}", agent=agent, owner=owner)
                for n in range(4):
                    thread.save({"n": n})
        last = Retention(last=1)

        assert self.store.prune(last, agent="a", owner="ann").checkpoints == 3
        assert self.sizes("a/ann", "a/bob", "b/ann", "b/bob") == [1, 4, 4, 4]
        assert self.store.prune(last, agent="a").checkpoints == 3
        assert self.store.prune(last, owner="ann").checkpoints == 3
        assert self.sizes("a/ann", "a/bob", "b/ann", "b/bob") == [1, 1, 1, 4]
        assert self.store.prune(last, prefix="b/").checkpoints == 3

    def sizes(self, *names: str) -> list[int]:
        return [len(self.thread(name).history()) for name in names]

    def test_only_the_threads_of_one_agent_are_dropped(self) -> None:
        for agent in ("a", "b"):
            for n in range(3):
                name = f"{agent} {n}"
                self.store.thread(name, agent=agent, owner="ann").save({})
        self.clock.advance(DAY)

        policy = Retention(threads_per_owner=2)
        assert self.store.prune(policy, agent="a").threads == 1
        assert self.store.prune(Retention(idle=HOUR), agent="a").threads == 2

        left = {thread.id for thread in self.store.threads()}
        assert left == {"b 0", "b 1", "b 2"}

    def test_what_other_threads_were_forked_from_stays(self) -> None:
        saved = self.filled(5)
        fork = self.thread().fork("fork", at=saved[1])
        fork.save({"n": "own"})
        fork.save({"n": "more"})
        policy = Retention(last=1, forks=False)

        assert self.thread().prune(policy).checkpoints == 3

        assert steps(fork.history()) == [4, 3, 2]
        assert fork.load("@{upstream}") == {"n": 2}
        assert fork.prune(policy).checkpoints == 1
        assert steps(fork.history()) == [4, 2]
        assert steps(self.thread().history()) == [5, 2]

    def test_dropping_a_thread_leaves_what_its_forks_need(self) -> None:
        saved = self.filled(5)
        fork = self.thread().fork("fork", at=saved[2])
        self.clock.advance(DAY)

        assert self.thread().prune(Retention(idle=HOUR)).threads == 1

        assert self.thread().head is None
        assert steps(fork.history()) == [3, 2, 1]
        # What a deleted thread left behind belongs to those that go on from it.
        fork.save({"n": "own"})
        assert fork.prune(Retention(last=1, forks=False)).checkpoints == 2
        assert steps(fork.history()) == [4, 3]

    def test_what_a_deleted_thread_left_to_several_is_pruned_for_all_only(self) -> None:
        saved = self.filled(4)
        for name in ("one", "two"):
            self.thread().fork(name, at=saved[3]).save({"n": name})
        self.thread().delete()
        policy = Retention(last=1, forks=False)

        assert self.thread("one").prune(policy) == Pruned()
        assert self.store.prune(policy).checkpoints == 3
        assert steps(self.thread("two").history()) == [5, 4]

    def test_a_restored_conversation_can_be_pruned_and_another_agents_is_not(
        self,
    ) -> None:
        for agent in ("a", "b"):
            self.store.agents.save(Agent(id=agent))
            for n in range(4):
                talk = Conversation(id=f"of {agent}", agent=agent, title=f"{n}")
                self.store.conversations.save(talk)
            self.store.agents.checkpoint(agent, "here")
            self.store.conversations.delete(f"of {agent}")
        self.store.agents.restore("a", "here")
        restored = self.store.conversations.thread("of a")
        assert len(restored.history()) == 4

        pruned = self.store.prune(Retention(last=1), agent="a")
        self.store.agents.restore("b", "here")

        assert (pruned.checkpoints, len(restored.history())) == (3, 1)
        assert self.store.conversations.load("of a").title == "3"
        assert len(self.store.conversations.thread("of b").history()) == 4
        self.store.agents.restore("a", "here")

    def test_a_restored_conversation_is_pruned_by_itself_and_by_its_kind(self) -> None:
        self.store.agents.save(Agent(id="a"))
        for n in range(6):
            self.store.conversations.save(Conversation(id="c", agent="a", title=f"{n}"))
        self.store.agents.checkpoint("a", "here")
        self.store.conversations.delete("c")
        self.store.agents.restore("a", "here")
        restored = self.store.conversations.thread("c")

        assert restored.prune(Retention(last=4)).checkpoints == 2
        kinds = ("conversation",)
        assert self.store.prune(Retention(last=1, kinds=kinds)).checkpoints == 3

        assert steps(restored.history()) == [6]
        self.store.agents.restore("a", "here")
        assert self.store.conversations.load("c").title == "5"

    def test_the_share_that_may_go_is_that_of_the_threads_it_is_limited_to(
        self,
    ) -> None:
        self.filled(40, "other")
        saved = self.filled(4)
        self.thread().fork("fork", at=saved[1]).save({})

        with raises(Conflict, "too_much"):
            self.thread().prune(Retention(last=2, forks=False, at_most=0.2))
        assert self.thread().prune(Retention(last=2, at_most=0.25)).checkpoints == 1

    def test_a_limit_that_makes_no_sense_is_refused(self) -> None:
        for wrong in untyped(5, b"chat", "a\0"):
            with raises(Unstorable):
                self.store.prune(Retention(last=1), agent=wrong)


class PrunedBranchTests(Cases):
    """Branches that nothing keeps."""

    def test_a_rewound_branch_goes_when_nothing_keeps_it(self) -> None:
        saved = self.filled(4)
        chat = self.thread()
        chat.rewind(saved[0])
        chat.save({"n": "new"})

        self.store.prune(Retention(last=1))

        assert [c.step for c in chat.history(all=True)] == [2]
        with raises(NotFound):
            chat.load(saved[3])


class Killed(BaseException):
    """Ends a prune as a kill does."""


class PrunedInPartsTests(Cases):
    """A prune of more threads than go into one transaction."""

    def many_threads(self) -> list[str]:
        names = [f"{n}" for n in range(36)]
        for name in names:
            self.filled(2, name)
        return names

    def checkpoint_count(self) -> int:
        return self.store.stats().checkpoints

    def test_its_result_is_the_sum_and_its_progress_reaches_the_end(self) -> None:
        names = self.many_threads()
        told: list[tuple[int, int]] = []

        with raises(Conflict, "too_much"):
            self.store.prune(Retention(last=1, at_most=0.49))
        assert self.checkpoint_count() == 2 * len(names)

        policy = Retention(last=1, at_most=0.5)
        dry = self.store.prune(policy, dry_run=True)
        pruned = self.store.prune(policy, progress=lambda *at: told.append(at))

        assert pruned == dry
        assert pruned.checkpoints == len(names)
        # Counted once for the share that it may remove, and then removed.
        assert told == [(32, 72), (36, 72), (68, 72), (72, 72)]
        assert self.checkpoint_count() == len(names)

    def test_what_a_killed_prune_left_the_next_one_removes(self) -> None:
        names = self.many_threads()

        def kill(_done: int, _of: int) -> None:
            raise Killed

        with raises(Killed):
            self.store.prune(Retention(last=1), progress=kill)

        done = 2 * len(names) - self.checkpoint_count()
        assert 0 < done < len(names)
        assert self.store.verify().ok
        assert self.store.prune(Retention(last=1)).checkpoints == len(names) - done
        assert self.store.verify().ok
        assert [self.thread(name).load() for name in names] == [{"n": 2}] * len(names)


class HousekeepingTests(Cases):
    """A policy of the store itself, applied after saves."""

    def test_a_stores_own_policy_is_applied_after_saves(self) -> None:
        store = self.open(retention=Retention(last=3), prune_every=timedelta(0))
        chat = store.thread("chat")
        for _ in range(10):
            chat.save({})

        assert steps(chat.history()) == [10, 9, 8]

    def test_a_stores_own_policy_is_applied_after_a_transaction(self) -> None:
        store = self.open(retention=Retention(last=3), prune_every=timedelta(0))
        for n in range(5):
            with store.transaction() as changes:
                changes.thread("chat").save({"n": n})

        assert steps(store.thread("chat").history()) == [5, 4, 3]

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
