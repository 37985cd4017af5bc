"""Retention: the pure choice, the plan of a removal, and what a prune leaves."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import holdfast
from holdfast import Retention, Thin, Unstorable
from holdfast.backends import Run
from holdfast.operations.threads import plan_removal
from holdfast.retention import ThreadRules
from holdfast.testing import FakeClock, ids, raises
from inner.port import FamilyTree, merged, outlined, subtract
from support.samples import LONG

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SPANS = st.integers(0, 60).map(lambda hours: hours * HOUR)
COUNTS = st.integers(0, 4)
POLICIES = st.builds(
    Retention,
    last=st.none() | st.integers(1, 4),
    within=st.none() | SPANS,
    thin=st.none() | st.builds(Thin, hourly=COUNTS, daily=COUNTS, weekly=COUNTS),
    labelled=st.booleans(),
    tagged=st.booleans(),
    forks=st.booleans(),
    idle=st.none() | SPANS,
    threads_per_owner=st.none() | st.integers(1, 3),
    threads_in_all=st.none() | st.integers(1, 3),
)
SCOPES = st.sampled_from(
    [{}, {"thread": "chat"}, {"owner": "you"}, {"prefix": "fork"}, {"agent": "a"}]
)


def micros(moment):
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def kept_of(moments, policy, now=None):
    """The indexes of what a policy keeps of saves at some moments, head included."""
    clock = FakeClock()
    with holdfast.open(":memory:", clock=clock) as store:
        for n, moment in enumerate(moments):
            clock.now = micros(moment)
            store.thread("chat").save({"n": n})
        clock.now = micros(now or moments[-1])
        store.prune(policy)
        chat = store.thread("chat")
        return [chat.load(c)["n"] for c in chat.history(order="oldest")]


class TestPolicies:
    def test_the_default_keeps_everything(self):
        policy = Retention()

        assert not policy.thins_threads
        assert not policy.drops_threads

    @pytest.mark.parametrize("field", ["last", "threads_per_owner", "threads_in_all"])
    @pytest.mark.parametrize("wrong", [0, -1, 1.0, True, "1", b"1"])
    def test_a_count_is_at_least_one(self, field, wrong):
        with raises(Unstorable) as refused:
            Retention(**{field: wrong})

        assert refused.error.path == field

    @pytest.mark.parametrize("field", ["within", "idle"])
    @pytest.mark.parametrize("wrong", [-DAY, timedelta.min, 1, 1.0, "1d"])
    def test_an_age_is_a_timedelta_that_is_not_negative(self, field, wrong):
        with raises(Unstorable) as refused:
            Retention(**{field: wrong})

        assert refused.error.path == field

    @pytest.mark.parametrize("wrong", [-0.1, 1.1, 50, True, float("nan"), "half"])
    def test_a_share_lies_between_nothing_and_everything(self, wrong):
        with raises(Unstorable) as refused:
            Retention(at_most=wrong)

        assert refused.error.path == "at_most"

    @pytest.mark.parametrize("field", ["labelled", "tagged", "forks"])
    def test_what_is_kept_beside_is_said_by_true_or_false(self, field):
        with raises(Unstorable) as refused:
            Retention(**{field: "no"})

        assert refused.error.path == field

    @pytest.mark.parametrize("wrong", ["conversation", {"agent"}, (1,), [None]])
    def test_kinds_are_a_sequence_of_names(self, wrong):
        with raises(Unstorable) as refused:
            Retention(kinds=wrong)

        assert refused.error.path == "kinds"

    @pytest.mark.parametrize("field", ["hourly", "daily", "weekly"])
    @pytest.mark.parametrize("wrong", [-1, 1.5, "1", None])
    def test_a_selection_is_thinned_by_counts(self, field, wrong):
        with raises(Unstorable) as refused:
            Thin(**{field: wrong})

        assert refused.error.path == field

    def test_policies_are_values(self):
        policy = Retention(last=3, thin=Thin(daily=7))

        assert policy == Retention(last=3, thin=Thin(daily=7))
        assert hash(policy) == hash(Retention(last=3, thin=Thin(daily=7)))
        with raises(AttributeError):
            policy.last = 4
        with raises(TypeError):
            Retention(3)


class TestThinning:
    def test_days_begin_at_midnight_utc(self):
        moments = [
            datetime(2024, 3, 1, 0, 0, tzinfo=UTC),
            datetime(2024, 3, 1, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(2024, 3, 2, 0, 0, tzinfo=UTC),
            datetime(2024, 3, 3, 12, 0, tzinfo=UTC),
        ]

        assert kept_of(moments, Retention(thin=Thin(daily=9))) == [1, 2, 3]

    def test_weeks_begin_on_monday(self):
        moments = [
            datetime(2024, 2, 26, tzinfo=UTC),  # a Monday
            datetime(2024, 3, 3, 23, tzinfo=UTC),  # the Sunday after it
            datetime(2024, 3, 4, tzinfo=UTC),  # the next Monday
            datetime(2024, 3, 5, tzinfo=UTC),
        ]

        assert kept_of(moments, Retention(thin=Thin(weekly=9))) == [1, 3]

    def test_only_periods_with_saves_are_counted(self):
        start = datetime(2024, 1, 1, tzinfo=UTC)
        moments = [start + DAY * n for n in (0, 10, 20, 400)]

        assert kept_of(moments, Retention(thin=Thin(daily=3))) == [1, 2, 3]

    def test_the_newest_of_a_period_is_what_was_saved_last(self):
        moments = [
            datetime(2024, 3, 1, 12, tzinfo=UTC),
            datetime(2024, 3, 1, 11, tzinfo=UTC),
            datetime(2024, 3, 2, tzinfo=UTC),
        ]

        assert kept_of(moments, Retention(thin=Thin(daily=9))) == [1, 2]

    def test_times_before_1970_are_fine(self):
        moments = [datetime(1969, 12, 31, n, tzinfo=UTC) for n in (1, 2, 23)]

        assert kept_of(moments, Retention(thin=Thin(daily=1, hourly=2))) == [1, 2]

    def test_counts_add_up(self):
        start = datetime(2024, 1, 1, tzinfo=UTC)
        moments = [start + HOUR * n for n in range(24 * 15)]
        policy = Retention(thin=Thin(hourly=2, daily=3, weekly=2))

        last = len(moments) - 1
        assert kept_of(moments, policy) == [
            24 * 14 - 1 - 24,
            24 * 14 - 1,
            last - 1,
            last,
        ]


class TestChoice:
    @given(POLICIES, st.lists(st.integers(0, 100), min_size=1, max_size=12))
    def test_a_choice_is_the_union_of_what_each_rule_keeps(self, policy, hours):
        clock = FakeClock(0)
        with holdfast.open(":memory:", clock=clock, new_id=ids()) as store:
            for n, hour in enumerate(hours):
                clock.now = hour * HOUR // timedelta(microseconds=1)
                label = "x" if n % 4 == 1 else None
                store.thread("chat").save({}, label=label, tags=["t"] * (n % 5 == 2))
            saved = list(store.thread("chat").history(order="oldest"))
            store.prune(replace(policy, idle=None))
            left = {c.id for c in store.thread("chat").history()}
        removed = {c.id for c in saved} - left
        kept = {saved[-1].id} if policy.thins_threads else {c.id for c in saved}
        kept |= {c.id for c in saved if policy.labelled and c.label}
        kept |= {c.id for c in saved if policy.tagged and c.tags}
        kept |= {c.id for c in saved[-(policy.last or len(saved) + 1) :] if policy.last}
        if policy.within is not None:
            oldest = clock.now - policy.within // timedelta(microseconds=1)
            kept |= {c.id for c in saved if c.saved_at >= oldest}
        if policy.thin is None:
            assert {c.id for c in saved} - removed == kept
        else:
            assert kept.isdisjoint(removed)

    def test_threads_without_an_owner_are_nobodys_extra(self, memory):
        for n in range(5):
            memory.thread(f"{n}").save({})

        policy = Retention(threads_per_owner=1)

        rules = ThreadRules(policy, 0)
        assert not any(map(rules.drops, memory.threads()))

    def test_a_thread_goes_by_either_rule(self, memory, clock):
        memory.thread("idle", owner="a").save({})
        clock.advance(10 * DAY)
        memory.thread("extra", owner="b").save({})
        memory.thread("kept", owner="b").save({})

        policy = Retention(idle=5 * DAY, threads_per_owner=1)
        dropped = list(filter(ThreadRules(policy, clock.now).drops, memory.threads()))

        assert {thread.id for thread in dropped} == {"idle", "extra"}


NUMBERS = st.integers(0, 60)
RUNS = st.lists(st.builds(lambda a, b: Run(min(a, b), max(a, b)), NUMBERS, NUMBERS))


def numbers(runs):
    return {n for run in runs for n in range(run.first, run.last + 1)}


class TestPlans:
    @given(RUNS)
    def test_merged_runs_are_the_same_numbers_apart(self, runs):
        result = merged(runs)

        assert numbers(result) == numbers(runs)
        assert all(a.last + 1 < b.first for a, b in pairwise(result))

    @given(RUNS, RUNS)
    def test_what_is_freed_is_what_nobody_keeps(self, runs, kept):
        freed = list(subtract(runs, kept))

        assert numbers(freed) == numbers(runs) - numbers(kept)
        assert freed == sorted(freed)

    def test_a_removal_joins_what_is_left(self, memory):
        chat = memory.thread("chat")
        saved = [chat.save({"n": n}) for n in range(5)]

        plan = plan_removal(saved[0].family, saved, saved[1:4])

        [relink] = plan.relinks
        assert (relink.child, relink.parent) == (saved[4], saved[0])
        assert relink.link == saved[3].sha256

    def test_removing_the_first_leaves_no_parent(self, memory):
        chat = memory.thread("chat")
        saved = [chat.save({"n": n}) for n in range(3)]

        [relink] = plan_removal(saved[0].family, saved, saved[:2]).relinks

        assert (relink.child, relink.parent) == (saved[2], None)

    def test_ancestry_and_descent_are_everything_on_the_way(self, memory):
        chat = memory.thread("chat")
        saved = [chat.save({"n": n}) for n in range(3)]
        chat.rewind(saved[0])
        tree = FamilyTree()
        tree.add(outlined([*saved, chat.save({"n": "branch"})]))
        tree.close()

        assert list(tree.ancestry([3])) == [1, 0, 0, 1]
        assert list(tree.ancestry([2])) == [1, 1, 1, 0]
        assert list(tree.ancestry([])) == [0, 0, 0, 0]
        assert list(tree.descent([1])) == [0, 1, 1, 0]
        assert list(tree.descent([0])) == [1, 1, 1, 1]


class TestPruning:
    @given(
        policy=POLICIES,
        scope=SCOPES,
        turns=st.lists(
            st.tuples(
                st.sampled_from(["save", "append", "fork", "rewind", "label", "other"]),
                st.integers(0, 9),
                st.integers(0, 30),
            ),
            min_size=1,
            max_size=25,
        ),
    )
    def test_whatever_a_policy_removes_the_rest_is_whole(self, policy, scope, turns):
        clock = FakeClock()
        with holdfast.open(":memory:", clock=clock, new_id=ids()) as store:
            chat = store.thread("chat", owner="me", agent="a")
            chat.save({"m": ["start" + LONG]})
            for kind, n, hours in turns:
                clock.advance(hours * HOUR)
                self.play(store, kind, n)
            before = {
                c.id: (store.load(c), c.step, c.digest) for c in everything(store)
            }
            threads = store.threads(limit=None)
            heads = {t.id: t.head.id for t in threads}
            safe = out_of_scope(threads, everything(store), scope)

            dry = store.prune(policy, **scope, dry_run=True)
            assert {c.id for c in everything(store)} == before.keys()
            assert store.prune(policy, **scope) == dry

            left = everything(store)
            assert safe <= {c.id for c in left}
            facts = store.stats()
            assert facts.checkpoints == len(left) == len(before) - dry.checkpoints
            assert facts.threads == len(heads) - dry.threads
            for checkpoint in left:
                stored = (store.load(checkpoint), checkpoint.step, checkpoint.digest)
                assert stored == before[checkpoint.id]
            known = {c.id for c in left}
            assert {c.parent for c in left} <= known | {None}
            for thread in store.threads(limit=None):
                assert thread.head.id == heads[thread.id]
            used = {
                (c.family, n) for c in left for run in c.runs for n in numbers([run])
            }
            assert facts.segments == len(used)
            assert store.prune(policy, **scope) == holdfast.Pruned()

    def play(self, store, kind, n):
        chat = store.thread("chat")
        if kind == "save":
            chat.save({"m": [f"{m} {LONG}" for m in range(n)], "text": f"{n} {LONG}"})
        elif kind == "append" and isinstance(chat.load().get("m"), list):
            chat.append(m=[f"{n} {LONG}"])
        elif kind == "fork" and store.thread(f"fork {n}").head is None:
            fork = chat.fork(f"fork {n}", at=pick(chat, n))
            fork.append(m=[f"fork {n} {LONG}"])
        elif kind == "rewind":
            chat.rewind(pick(chat, n))
        elif kind == "label":
            chat.label("x", pick(chat, n))
        else:
            other = store.thread(f"other {n}", owner="you", agent="ab"[n % 2])
            other.save({"text": f"{n} {LONG}"})

    def test_a_prune_is_one_change_of_each_thread_it_thins(self, memory):
        for name in "ab":
            for n in range(4):
                memory.thread(name).save({"n": n})
        cursor = memory.changes().cursor

        memory.prune(Retention(last=1))

        told = [(c.kind, c.thread) for c in memory.changes(after=cursor)]
        assert sorted(told) == [("prune", "a"), ("prune", "b")]

    def test_a_refused_prune_changes_nothing(self, memory):
        for n in range(4):
            memory.thread("chat").append(m=[f"{n} {LONG}"])
        before = (memory.stats(), list(memory.changes()))

        with raises(holdfast.Conflict, "too_much"):
            memory.prune(Retention(last=1, at_most=0.5))

        assert (memory.stats(), list(memory.changes())) == before

    def test_the_bytes_freed_can_be_given_back(self, path):
        with holdfast.open(path, durability="normal") as store:
            chat = store.thread("chat")
            for n in range(100):
                chat.save({"text": f"{n} " * 5000})
            freed = store.prune(Retention(last=1)).bytes
            before = store.stats().file_bytes
            store.compact()

            assert freed > 900_000
            assert before - store.stats().file_bytes > 0.8 * freed


def pick(thread, n):
    history = thread.history(None, all=True)
    return history[n % len(history)]


def everything(store):
    """Every checkpoint of the store once, oldest first."""
    found = {}
    for thread in store.threads(limit=None):
        handle = store.thread(thread.id)
        found |= {c.id: c for c in handle.history(None, all=True)}
        found |= {c.id: c for c in handle.history(None)}
    return sorted(found.values(), key=lambda c: c.seq)


def out_of_scope(threads, checkpoints, scope):
    """What a prune must leave: heads, saves and fork points of the other threads."""
    others = {t.id: t for t in threads if not is_in_scope(t, **scope)}
    origins = [t.forked_from for t in others.values() if t.forked_from is not None]
    safe = {t.head.id for t in others.values()} | {o.checkpoint for o in origins}
    return safe | {c.id for c in checkpoints if c.thread in others}


def is_in_scope(record, thread=None, owner=None, prefix="", agent=None):
    return (
        thread in (None, record.id)
        and owner in (None, record.owner)
        and agent in (None, record.agent)
        and record.id.startswith(prefix)
    )
