"""Random histories of trees against a dict: every file of a checkpoint comes back."""

import io
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import Retention
from inner.port import merged
from inner.values import count_segments
from support.snapshots import MemorySnapshot

NAMES = st.sampled_from(["a", "b/c", "b/d", "e", "\udcff"])
LINES = [b"%d %d\n" % (n, n * n) for n in range(4000)]
# Small ones, and two of several chunks that share most of them.
LARGE = [b"".join(LINES), b"".join([*LINES[:2000], b"edited\n", *LINES[2000:]])]
CONTENTS = st.one_of(st.binary(max_size=20), st.sampled_from(LARGE))
THREADS = st.sampled_from(["one", "two", "three"])
STEPS = st.one_of(
    st.tuples(st.just("set"), THREADS, NAMES, CONTENTS),
    st.tuples(st.just("set"), THREADS, NAMES, CONTENTS),
    st.tuples(st.just("remove"), THREADS, NAMES),
    st.tuples(st.just("keep"), THREADS),
    st.tuples(st.just("fork"), THREADS, THREADS, st.integers(0, 5)),
    st.tuples(st.just("rewind"), THREADS, st.integers(0, 5)),
    st.tuples(st.just("prune"), st.integers(1, 3)),
    st.sampled_from([("copy",), ("archive",), ("compact",)]),
)


class History:
    """A store with a model beside it: the files of each checkpoint by its id."""

    def __init__(self, open_store):
        self._open = open_store
        self.store = open_store()
        self.files = {}
        self.heads = {}

    def set(self, thread, name, content):
        self._save(thread, {**self._now(thread), name: content})

    def remove(self, thread, name):
        files = self._now(thread)
        files.pop(name, None)
        self._save(thread, files)

    def keep(self, thread):
        if thread in self.heads:
            saved = self.store.thread(thread).save({"n": len(self.files)})
            self.files[saved.id] = self._now(thread)
            self.heads[thread] = saved.id

    def fork(self, thread, new, back):
        if thread in self.heads and new not in self.heads:
            point = self._back(thread, back)
            self.store.thread(thread).fork(new, point.id)
            self.heads[new] = point.id

    def rewind(self, thread, back):
        if thread in self.heads:
            point = self._back(thread, back)
            self.store.thread(thread).rewind(point.id)
            self.heads[thread] = point.id

    def prune(self, last):
        self.store.prune(Retention(last=last))

    def copy(self):
        other = self._open()
        self.store.copy_to(other)
        self._take(other)

    def archive(self):
        file = io.BytesIO()
        self.store.export_to(file)
        other = self._open()
        other.import_archive(file)
        self._take(other)

    def compact(self):
        self.store.compact()

    def check(self):
        """Every file of every checkpoint that is left, read by another store's eyes."""
        used = []
        for thread in self.heads:
            for checkpoint in self.store.thread(thread).tree(None):
                handle = self.store.thread(checkpoint.thread)
                tree, wanted = handle.files(checkpoint), self.files[checkpoint.id]
                assert tree == MemorySnapshot(wanted).tree
                assert handle.read_files(list(tree), checkpoint) == [
                    wanted[name] for name in tree
                ]
                used += [(checkpoint.family, run) for run in checkpoint.runs]
        families = itertools.groupby(sorted(used), lambda each: each[0])
        counts = [count_segments(merged(r for _, r in runs)) for _, runs in families]
        assert self.store.stats().segments == sum(counts)
        assert self.store.verify().problems == ()

    def _now(self, thread):
        return dict(self.files.get(self.heads.get(thread), {}))

    def _save(self, thread, files):
        snapshot = MemorySnapshot(files)
        saved = self.store.thread(thread).save({"n": len(self.files)}, files=snapshot)
        self.files[saved.id] = files
        self.heads[thread] = saved.id

    def _back(self, thread, back):
        line = list(self.store.thread(thread).history())
        return line[min(back, len(line) - 1)]

    def _take(self, other):
        self.store.close()
        self.store = other


def play(open_store, steps):
    history = History(open_store)
    try:
        for name, *arguments in steps:
            getattr(history, name)(*arguments)
        history.check()
    finally:
        history.store.close()


@settings(deadline=None)
@given(st.lists(STEPS, max_size=20))
def test_every_file_of_every_remaining_checkpoint_comes_back(steps):
    play(lambda: holdfast.open(":memory:"), steps)


@settings(deadline=None, max_examples=settings().max_examples // 4)
@given(st.lists(STEPS, max_size=20))
def test_so_it_does_compressed(steps):
    play(lambda: holdfast.open(":memory:", compress=True), steps)


@pytest.mark.parametrize("cache", [0, 1 << 20])
def test_a_cache_changes_nothing(cache, tmp_path):
    steps = [("set", "one", f"{n % 7}", b"%d" % n * 3000) for n in range(30)]
    numbers = itertools.count()

    play(
        lambda: holdfast.open(tmp_path / f"{next(numbers)}.db", cache_size=cache),
        [*steps, ("fork", "one", "two", 3), ("set", "two", "x", b"x"), *steps],
    )
