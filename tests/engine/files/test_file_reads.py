"""How much of a store is read to list and to compare files."""

import pytest
from msgspec.structs import replace

from holdfast import Store
from holdfast.backends import Layer
from support.snapshots import MemorySnapshot

MANY = {f"src/f{n}.py": b"%d" % n for n in range(300)}


class CountedReads(Layer):
    """Counts the bytes of segments that are read."""

    def __init__(self, backend):
        super().__init__(backend)
        self.size = 0

    async def segments(self, family, runs):
        found = await super().segments(family, runs)
        self.size += sum(len(segment.data) for segment in found)
        return found


@pytest.fixture
def counted(memory):
    """A thread, and what counts its reads."""
    context = memory.runner.context
    layer = CountedReads(context.backend)
    return Store(replace(context, backend=layer)).thread("coder"), layer


def test_a_list_is_read_once_and_its_neighbours_without_what_they_share(counted):
    thread, layer = counted
    thread.save({}, files=MemorySnapshot(MANY))
    changed = MANY | {"src/f7.py": b"edited"}
    head = thread.save({}, files=MemorySnapshot(changed))

    assert thread.files(head) == thread.files() == MemorySnapshot(changed).tree
    assert layer.size == 0
    # Its list is the oldest level of the head's.
    assert thread.files("@1") == MemorySnapshot(MANY).tree
    assert layer.size == 0
    third = thread.save({}, files=MemorySnapshot(changed | {"new": b""}))
    assert thread.files(head) == MemorySnapshot(changed).tree
    assert 0 < layer.size < len(MANY)
    assert thread.diff_files(head, third)[0].path == "new"


def test_a_comparison_reads_no_file_that_it_tells_by_its_size(counted):
    thread, layer = counted
    large = b"x" * (1 << 20)
    old = {"a.log": large, "b.log": large + b"y", "c.txt": b"1\n"}
    thread.save({}, files=MemorySnapshot(old))
    new = {"a.log": large + b"z", "b.log": b"", "c.txt": b"2\n"}
    thread.save({}, files=MemorySnapshot(new))
    layer.size = 0

    found = thread.diff_files("@1")

    assert [bool(change.lines) for change in found] == [False, False, True]
    assert layer.size < 10_000


def test_lines_are_compared_up_to_a_limit_and_of_a_chosen_path_always(counted):
    thread, _ = counted
    names = [f"part/{n}.txt" for n in range(10)] + ["z.txt"]
    for letter in (b"x", b"y"):
        texts = dict.fromkeys(names, letter * (1 << 20))
        thread.save({}, files=MemorySnapshot(texts))

    found = thread.diff_files("@1")
    assert [bool(change.lines) for change in found] == [True] * 8 + [False] * 3
    [last] = thread.diff_files("@1", path="z.txt")
    assert last.lines[0] == "@@ -1 +1 @@"
    assert len(thread.diff_files("@1", path="part/")) == 10
    assert thread.diff_files("@1", path="par") == ()
