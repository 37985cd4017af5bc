"""A state machine that does the same to the threads of a store and to the model."""

import contextlib
import os
import shutil
from tempfile import TemporaryDirectory

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

import holdfast
from holdfast import Conflict, NotFound, Retention, Unstorable
from holdfast.testing import FakeClock, blocking, ids, raises
from support.model import Model

NAMES = st.sampled_from(["a", "b", "c"])
# Few and similar, so that versions share elements in every way there is; by name, so
# that a failure can be read.
ELEMENTS = {
    "one": 1,
    "short": "x" * 70,
    "long": "x" * 300,
    "pair": ["x" * 70, "x" * 300],
    "message": {"role": "user", "text": "x" * 300},
    "large": {"role": "user", "text": "y" * 5000},
    "tuple": ("a tuple", b"\0"),
    "around": ["before", "x" * 300, "after"],
    "commas": "," + "1," * 200,
}
element_names = st.sampled_from(list(ELEMENTS))
list_names = st.lists(element_names, max_size=12)
value_names = st.one_of(list_names, element_names, st.just(["one"] * 300))
state_names = st.one_of(
    st.dictionaries(st.sampled_from(["m", "k", ""]), value_names, max_size=3),
    st.dictionaries(st.sampled_from(["m", "k"]), list_names, min_size=1, max_size=2),
    value_names,
)


def built(names):
    """The state, value or element that is meant by names."""
    if isinstance(names, dict):
        return {key: built(value) for key, value in names.items()}
    if isinstance(names, list):
        return [built(name) for name in names]
    return ELEMENTS[names]


def has_saves(machine):
    return bool(machine.model.started)


class Machine(RuleBasedStateMachine):
    """A file, by the sync API."""

    options = {}  # noqa: RUF012 - never changed

    @initialize()
    def begin(self):
        self.model = Model()
        self.folder = TemporaryDirectory()
        self.clock, self.new_id = FakeClock(), ids()
        self.open()

    def open(self):
        url = os.path.join(self.folder.name, "store.db")
        self.store = self.open_store(
            url,
            durability="normal",
            clock=self.clock,
            new_id=self.new_id,
            **self.options,
        )

    def open_store(self, url, **options):
        return holdfast.open(url, **options)

    def teardown(self):
        if hasattr(self, "store"):
            with contextlib.closing(self.store), self.folder:
                self.compare_everything()

    # --- saving -----------------------------------------------------------------------

    @rule(name=NAMES, names=state_names)
    def save(self, name, names):
        state = built(names)
        thread = self.store.thread(name)
        if name in self.model.deleted:
            with raises(Conflict, "thread_deleted"):
                thread.save(state)
            return
        self.model.save(name, thread.save(state).id, state)

    @rule(name=NAMES, names=state_names)
    def begin_anew(self, name, names):
        state = built(names)
        thread = self.store.thread(name)
        if name in self.model.started:
            with raises(Conflict, "head_moved"):
                thread.save(state, expect=None)
            return
        self.model.save(name, thread.save(state, expect=None).id, state)

    @precondition(has_saves)
    @rule(data=st.data())
    def save_the_same(self, data):
        name = data.draw(st.sampled_from(self.model.started))
        head = self.model.threads[name].head

        kept = self.store.thread(name).save(
            self.model.saved[head].state, if_changed=True
        )

        assert kept.id == head

    @precondition(has_saves)
    @rule(data=st.data(), names=list_names, key=st.sampled_from(["m", "k", ""]))
    def append(self, data, names, key):
        elements = built(names)
        name = data.draw(st.sampled_from(self.model.started))
        thread = self.store.thread(name)
        state = self.model.saved[self.model.threads[name].head].state
        if type(state) is not dict or type(state.get(key, [])) is not list:
            with raises(Unstorable):
                thread.extend({key: elements})
            return
        saved = thread.extend({key: elements})
        grown = {**state, key: [*state.get(key, []), *elements]}
        self.model.save(name, saved.id, grown)

    @precondition(has_saves)
    @rule(data=st.data(), at=st.integers(0, 11), new=element_names)
    def edit(self, data, at, new):
        name = data.draw(st.sampled_from(self.model.started))
        state = self.model.saved[self.model.threads[name].head].state
        if type(state) is not dict:
            return
        edited = {
            key: [*value[:at], ELEMENTS[new], *value[at + 1 :]]
            if type(value) is list
            else value
            for key, value in state.items()
        }
        self.model.save(name, self.store.thread(name).save(edited).id, edited)

    # --- moving -----------------------------------------------------------------------

    @precondition(has_saves)
    @rule(data=st.data(), new=NAMES)
    def fork(self, data, new):
        name = data.draw(st.sampled_from(self.model.started))
        at = data.draw(st.sampled_from(self.model.everything(name)))
        if new in self.model.threads:
            with raises(Conflict, "thread_exists"):
                self.store.thread(name).fork(new, at=at)
            return
        self.store.thread(name).fork(new, at=at)
        self.model.fork(new, at)

    @precondition(has_saves)
    @rule(data=st.data())
    def rewind(self, data):
        name = data.draw(st.sampled_from(self.model.started))
        at = data.draw(st.sampled_from(self.model.everything(name)))

        self.store.thread(name).rewind(at)

        self.model.move(name, at)

    @precondition(has_saves)
    @rule(data=st.data())
    def rewind_hard(self, data):
        name = data.draw(st.sampled_from(self.model.started))
        at = data.draw(st.sampled_from(self.model.everything(name)))

        self.store.thread(name).rewind(at, hard=True)

        self.model.rewind_hard(name, at)

    @precondition(has_saves)
    @rule(data=st.data(), redo=st.booleans())
    def undo_or_redo(self, data, redo):
        name = data.draw(st.sampled_from(self.model.started))
        line, thread = self.model.threads[name], self.store.thread(name)
        move = thread.redo if redo else thread.undo
        if line.is_doubtful:
            with contextlib.suppress(NotFound):
                moved = move()
                assert moved.id in self.model.everything(name)
                line.head = moved.id
        elif line.future if redo else line.past:
            moved = move()
            ends = ("future", "past") if redo else ("past", "future")
            self.model.turn(name, *ends)
            assert moved.id == line.head
        else:
            with raises(NotFound):
                move()

    # --- marking ----------------------------------------------------------------------

    @precondition(has_saves)
    @rule(data=st.data(), label=st.sampled_from([None, "x", "y"]))
    def label(self, data, label):
        name = data.draw(st.sampled_from(self.model.started))
        at = data.draw(st.sampled_from(self.model.everything(name)))

        self.store.thread(name).label(label, at)

        self.model.saved[at].label = label

    @precondition(has_saves)
    @rule(data=st.data(), tag=st.sampled_from(["t", "u"]), take=st.booleans())
    def tag(self, data, tag, take):
        name = data.draw(st.sampled_from(self.model.started))
        at = data.draw(st.sampled_from(self.model.everything(name)))
        thread, saved = self.store.thread(name), self.model.saved[at]
        thread.untag(tag, ref=at) if take else thread.tag(tag, ref=at)
        kept = tuple(t for t in saved.tags if t != tag)
        if take:
            saved.tags = kept
        elif tag not in saved.tags:
            saved.tags = (*saved.tags, tag)

    @rule(name=NAMES, key=st.sampled_from("jk"), names=value_names)
    def record(self, name, key, names):
        value = built(names)
        thread = self.store.thread(name)
        if name in self.model.deleted:
            with raises(Conflict, "thread_deleted"):
                thread.record(key, value)
            return
        journal = self.model.thread(name).journal
        assert thread.record(key, value) == journal.setdefault(key, value)

    # --- removing ---------------------------------------------------------------------

    @rule(name=NAMES)
    def delete(self, name):
        is_there = name in self.model.threads

        assert self.store.thread(name).delete() == is_there

        if is_there:
            self.model.delete(name)

    @precondition(has_saves)
    @rule(data=st.data())
    def delete_checkpoint(self, data):
        name = data.draw(st.sampled_from(self.model.started))
        at = data.draw(st.sampled_from(self.model.everything(name)))
        others = [line.head for n, line in self.model.threads.items() if n != name]
        line, owner = self.model.threads[name], self.model.saved[at].line
        is_head = line.head == at
        is_theirs = owner is not line and owner in self.model.threads.values()
        is_only_one = is_head and self.model.saved[at].parent is None
        if at in others or is_theirs or is_only_one:
            with raises(Conflict):
                self.store.thread(name).delete(at)
            return
        assert self.store.thread(name).delete(at) == 1
        if is_head:
            self.model.move(name, self.model.saved[at].parent)
        self.model.remove({at})

    @rule(last=st.integers(1, 4))
    def prune(self, last):
        before = len(self.model.saved)
        self.model.prune(last)
        expected = before - len(self.model.saved)

        dry = self.store.prune(Retention(last=last), dry_run=True)
        pruned = self.store.prune(Retention(last=last))

        assert dry == pruned
        assert pruned.checkpoints == expected

    @rule()
    def compact(self):
        self.store.compact()

    @rule()
    def verify(self):
        assert self.store.verify().problems == ()

    @rule()
    def reopen(self):
        self.store.close()
        self.open()

    # --- comparing --------------------------------------------------------------------

    @invariant()
    def compare_heads(self):
        if not hasattr(self, "model"):
            return
        assert self.store.stats().checkpoints == len(self.model.saved)
        for name in self.model.started:
            head = self.store.thread(name).get()
            assert head.id == self.model.threads[name].head
            assert self.store.thread(name).load() == self.model.saved[head.id].state

    @rule()
    def compare_everything(self):
        listed = {thread.id for thread in self.store.threads()}
        assert listed == {*self.model.started}
        for name, line in self.model.threads.items():
            thread = self.store.thread(name)
            assert thread.journal() == line.journal
            if not line.head:
                continue
            history = [checkpoint.id for checkpoint in thread.history(None)]
            assert history == self.model.history(name)
            everything = list(thread.history(None, all=True))
            assert [c.id for c in everything] == self.model.everything(name)
            for checkpoint in everything:
                self.compare(thread, checkpoint)
        for name in self.model.deleted:
            assert self.store.thread(name).head is None

    def compare(self, thread, checkpoint):
        saved = self.model.saved[checkpoint.id]
        assert thread.load(checkpoint) == saved.state
        assert (checkpoint.parent, checkpoint.step) == (saved.parent, saved.step)
        assert (checkpoint.label, checkpoint.tags) == (saved.label, saved.tags)


class AwaitedMachine(Machine):
    """A file, by the async API."""

    def open_store(self, url, **options):
        return blocking(holdfast.open_async(url, **options))


class CompressedMachine(Machine):
    """A compressed file and a cache that never holds anything."""

    options = {"compress": True, "cache_size": 0}  # noqa: RUF012 - never changed


class DirectoryMachine(Machine):
    """A folder, whose index can be lost, and which is sound in the end."""

    def open_store(self, url, **options):
        self.index = os.path.join(url, ".holdfast")
        return self.open_folder(f"dir:{url}", **options)

    def open_folder(self, url, **options):
        return holdfast.open(url, **options)

    @rule()
    def lose_index(self):
        self.store.close()
        shutil.rmtree(self.index)
        self.open()


class AwaitedDirectoryMachine(DirectoryMachine):
    """The same by the async API."""

    def open_folder(self, url, **options):
        return blocking(holdfast.open_async(url, **options))


# With how much of what Hypothesis usually tries; PostgreSQL has tests of its own.
