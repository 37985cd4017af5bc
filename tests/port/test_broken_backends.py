"""The published suite finds a backend that breaks a promise of the port."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast import HoldfastError, Page, Store
from holdfast.backends import (
    UNSET,
    Ancestors,
    Candidates,
    CheckpointEntries,
    Entries,
    FamilyEntries,
    Layer,
    LineLength,
    Marked,
    Matches,
    Moves,
    Saves,
    Start,
    StateKey,
    ThreadKey,
    Threads,
    Weights,
    run,
)
from holdfast.testing import StoreTests
from inner.api import context_over
from inner.sqlite import SqliteBackend

# The options of a store that its backend gets.
OF_BACKENDS = {"durability", "read_only", "busy_timeout"}


class Writing(Layer):
    """Makes something else of each write; a subclass says what, with `changed`."""

    def changed(self, write):
        return write

    async def commit(self, writes):
        return await super().commit([self.changed(write) for write in writes])

    def commit_each(self, batches):
        return super().commit_each([[*map(self.changed, batch)] for batch in batches])

    async def prune(self, plan):
        first, then = (
            tuple(map(self.changed, writes)) for writes in (plan.first, plan.then)
        )
        return await super().prune(replace(plan, first=first, then=then))


def writes(change):
    """A backend that makes something else of each write."""
    return type("Written", (Writing,), {"changed": lambda _, write: change(write)})


def starts(**changes):
    """A backend that begins threads in another way."""
    return writes(
        lambda write: (
            replace(write, start=replace(write.start, **changes))
            if write.start
            else write
        )
    )


def asks(kind, **changes):
    """A backend that ignores a part of a query."""

    class Asking(Layer):
        async def scan(self, query):
            wrong = replace(query, **changes) if isinstance(query, kind) else query
            return await super().scan(wrong)

    return Asking


def lists(kind, change):
    """A backend that gives something else as a page of a query."""

    class Listing(Layer):
        async def scan(self, query):
            page = await super().scan(query)
            if not isinstance(query, kind):
                return page
            return Page(tuple(change(page.items)), page.cursor)

    return Listing


def plans(change):
    """A backend that carries out another plan."""

    class Planning(Layer):
        async def prune(self, plan):
            return await super().prune(change(plan))

    return Planning


def feeds(change):
    """A backend with another feed."""

    class Feeding(Layer):
        async def changes(self, after, limit, timeout):
            page = await super().changes(after, limit, timeout)
            return Page(tuple(change(page.items)), page.cursor)

    return Feeding


def named(change):
    """A backend that finds a thread under another name."""

    class Naming(Writing):
        def changed(self, write):
            saved = write.checkpoint
            saved = saved and replace(saved, thread=change(saved.thread))
            return replace(write, thread=change(write.thread), checkpoint=saved)

        async def read(self, keys):
            return await super().read(
                [
                    replace(key, name=change(key.name)) if hasattr(key, "name") else key
                    for key in keys
                ]
            )

    return Naming


class AnyHead(Writing):
    """Saves on any head, whatever was expected."""

    def changed(self, write):
        saved = write.checkpoint
        if saved is None or write.expect is UNSET:
            return write
        [thread] = run(self.backend.read([ThreadKey(write.thread)]))
        head = thread and thread.head
        parent, step = (head.id, head.step + 1) if head else (None, 1)
        moved = replace(saved, parent=parent, step=step)
        return replace(write, expect=head, checkpoint=moved)


class JournalFirst(Layer):
    """Records the journal of a save in a transaction of its own."""

    async def commit(self, writes):
        for write in writes:
            await super().commit(self.apart(write))
        return await super().commit(writes)

    def commit_each(self, batches):
        super().commit_each([self.apart(write) for batch in batches for write in batch])
        return super().commit_each(batches)

    def apart(self, write):
        if not write.entries or write.checkpoint is None:
            return []
        return [replace(write, checkpoint=None, segments=(), expect=UNSET)]


class InOrderOfNumbers(Layer):
    """Gives segments by their numbers instead of in the order of the runs."""

    async def segments(self, family, runs):
        return sorted(await super().segments(family, runs), key=lambda s: s.number)


class AlwaysKnown(Layer):
    """Leaves the segments of a state out, whatever head the caller knows."""

    async def read(self, keys):
        found = await super().read(keys)
        return [
            replace(state, segments=None)
            if isinstance(key, StateKey) and key.known is not None and state
            else state
            for key, state in zip(keys, found, strict=True)
        ]


class Like(Layer):
    """Takes a prefix for a pattern of SQL."""

    async def scan(self, query):
        prefix = getattr(query, "prefix", None)
        if not isinstance(query, Threads) or prefix is None:
            return await super().scan(query)
        pattern = re.escape(prefix).replace("%", ".*").replace("_", ".")
        page = await super().scan(replace(query, prefix=None))
        return Page(tuple(t for t in page if re.match(pattern, t.id)), page.cursor)


class Impatient(Layer):
    """Does not wait for changes."""

    async def changes(self, after, limit, timeout):
        return await super().changes(after, limit, 0)


class LooksIntoNoBlocks(Layer):
    """Takes a number that is inside of a block for free."""

    async def ready(self):
        await super().ready()
        sqlite: Any = self.backend
        sqlite.database.writer.execute("drop trigger if exists segment_taken")


class AdmitsNoJournal(Layer):
    """Loses the journals of an import."""

    async def admit(self, admission):
        def families():
            for adoption, segments in admission.families():
                yield replace(adoption, entries=()), segments

        await super().admit(replace(admission, families=families))


def without_relinks(plan):
    families = (replace(family, relinks=()) for family in plan.families)
    return replace(plan, families=tuple(families))


def without_free(plan):
    families = (replace(family, free=()) for family in plan.families)
    return replace(plan, families=tuple(families))


def without_packed(plan):
    families = (
        replace(family, packed=()) if family.free else family
        for family in plan.families
    )
    return replace(plan, families=tuple(families))


def first_range(candidates):
    return [
        replace(found, where=found.where and found.where[:1]) for found in candidates
    ]


# Backends, each with one rule that fails on it.
BROKEN = {
    "a_checkpoint_can_be_labelled_later": writes(lambda w: replace(w, marks=())),
    "of_two_that_expect_the_same_head_one_wins": AnyHead,
    "a_refused_save_records_nothing": JournalFirst,
    "the_first_value_under_a_key_stays": writes(
        lambda w: replace(w, replace_entries=True)
    ),
    "a_value_is_replaced_on_request": writes(
        lambda w: replace(w, replace_entries=False)
    ),
    "a_late_writer_is_turned_away": starts(anew=True),
    "a_fork_begins_with_what_its_source_was_described_as": starts(kind=Start().kind),
    "a_fork_knows_where_it_comes_from": starts(origin=None),
    "a_new_conversation_with_the_same_ids_is_not_taken_for_the_old": starts(agent=None),
    "a_thread_can_be_described_later": writes(lambda w: replace(w, details=None)),
    "a_list_turned_round_comes_back": InOrderOfNumbers,
    "a_thread_started_again_with_the_same_id_has_its_own_state": AlwaysKnown,
    "any_text_names_a_thread": named(str.lower),
    "any_text_names_a_thread_after_reopening": named(lambda n: n.rstrip() or " "),
    "a_prefix_is_plain_text": Like,
    "its_pins_are_not_listed_among_the_threads": asks(Threads, without=None),
    "threads_are_filtered": asks(Threads, owner=None),
    "a_deleted_fork_leaves_the_family": asks(Threads, every=True),
    "the_clock_does_not_change_that": lists(
        Threads, lambda found: sorted(found, key=lambda t: -t.updated_at)
    ),
    "what_was_rewound_is_listed_only_with_all": lists(Saves, reversed),
    "all_is_paged_as_well": asks(Saves, before=None),
    "history_lists_the_newest_first": lists(Ancestors, reversed),
    "a_history_is_counted_without_being_listed": lists(
        LineLength, lambda found: [count + 1 for count in found]
    ),
    "a_step_is_found_on_the_line_of_the_head": asks(Ancestors, from_step=None),
    "find_gives_the_newest_or_nothing": lists(Marked, reversed),
    "an_id_or_the_beginning_of_one": lists(Matches, lambda _: ()),
    "the_log_comes_in_pages": asks(Moves, before=None),
    "what_was_not_recorded_is_the_default": asks(Entries, key=None),
    "several_are_recorded_at_once": lists(
        Entries, lambda found: sorted(found, key=lambda e: e.key)
    ),
    "what_is_forgotten_is_gone_and_the_rest_stays": writes(
        lambda w: replace(w, forget=())
    ),
    "on_another_head_nothing_is_recorded": writes(
        lambda w: w if w.checkpoint else replace(w, expect=UNSET)
    ),
    "of_a_family_only_the_first_records_a_key": writes(
        lambda w: replace(w, family_wide=False)
    ),
    "entries_are_listed_by_the_beginning_of_their_keys": asks(Entries, prefix=None),
    "a_family_lists_what_its_threads_recorded_on_themselves": lists(
        FamilyEntries, reversed
    ),
    "the_journals_of_several_checkpoints_are_one_listing": asks(
        CheckpointEntries, checkpoints=()
    ),
    "the_heaviest_come_first_with_their_forks": lists(Weights, reversed),
    "long_queries_and_long_messages_are_found": lists(Candidates, first_range),
    "only_the_wanted_conversations_are_searched": asks(Candidates, owner=None),
    "changes_come_in_the_order_of_the_commits": feeds(reversed),
    "every_kind_of_change_is_in_the_feed": feeds(
        lambda found: [change for change in found if change.kind != "delete"]
    ),
    "waiting_for_nothing_ends_with_the_timeout": Impatient,
    "forks_that_begin_inside_of_a_block_go_their_own_ways": LooksIntoNoBlocks,
    "a_prune_that_needs_a_part_of_a_block_keeps_that_part": plans(without_packed),
    "an_import_beside_others_keeps_everything": AdmitsNoJournal,
    "a_dry_run_counts_exactly_what_would_be_removed": plans(
        lambda plan: replace(plan, dry_run=False)
    ),
    "a_hard_rewind_deletes_what_was_ahead": plans(lambda p: replace(p, first=())),
    "a_restore_replaces_a_new_conversation_with_the_same_id": plans(
        lambda plan: replace(plan, then=())
    ),
    "a_tombstone_is_forgotten_in_the_end": plans(
        lambda plan: replace(plan, forget_before=None)
    ),
    "a_checkpoint_in_the_middle_goes": plans(without_relinks),
    "only_what_no_other_checkpoint_shares_is_freed": plans(without_free),
}


def is_kept(rule, layer, path):
    """Whether a rule of the suite holds on a layer over SQLite."""

    class Suite(StoreTests):
        def open_store(self, **options):
            given = {n: v for n, v in options.items() if n in OF_BACKENDS}
            backend = layer(SqliteBackend(str(path), **given))
            run(backend.ready())
            return Store(context_over(backend, options))

    suite = Suite()
    suite.setup_method()
    try:
        getattr(suite, f"test_{rule}")()
    except (AssertionError, HoldfastError, LookupError, ValueError):
        return False
    finally:
        suite.teardown_method()
    return True


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_backend_breaks_a_rule(rule, tmp_path):
    assert is_kept(rule, Layer, tmp_path / "sound.db")
    assert not is_kept(rule, BROKEN[rule], tmp_path / "broken.db")
