"""Trees of files as values: what two of them differ in."""

import hashlib
import stat

from holdfast.workspace import FileEntry, Omitted, Snapshot, Tree, TreeChanges
from inner.values import compare

REGULAR = stat.S_IFREG | 0o644


def entry(path: bytes, content: bytes, mode: int = REGULAR) -> FileEntry:
    return FileEntry(path, mode, len(content), hashlib.sha256(content).digest())


def tree(*entries: FileEntry) -> Tree:
    return Tree({each.path: each for each in entries})


def test_a_tree_does_not_differ_from_itself() -> None:
    one = tree(entry(b"a", b"1"), entry(b"b/c", b"2"))

    assert not compare(one, one)


def test_a_comparison_lists_what_was_added_removed_and_changed_in_order() -> None:
    old = tree(entry(b"z", b"1"), entry(b"gone", b"2"), entry(b"also gone", b"3"))
    new = tree(entry(b"z", b"2"), entry(b"new", b"2"), entry(b"brand new", b"3"))

    assert compare(old, new) == TreeChanges(
        added=(b"brand new", b"new"), removed=(b"also gone", b"gone"), changed=(b"z",)
    )


def test_other_permissions_are_no_other_content() -> None:
    old = tree(entry(b"run", b"#!"), entry(b"both", b"#!"))
    new = tree(
        entry(b"run", b"#!", REGULAR | 0o111), entry(b"both", b"#", REGULAR | 0o111)
    )

    assert compare(old, new) == TreeChanges(changed=(b"both",), mode_changed=(b"run",))


def test_a_link_to_a_name_is_not_a_file_that_contains_the_name() -> None:
    old = tree(entry(b"a", b"target"))
    new = tree(entry(b"a", b"target", stat.S_IFLNK | 0o777))

    assert compare(old, new) == TreeChanges(changed=(b"a",))
    assert new.entries[b"a"].is_link
    assert not old.entries[b"a"].is_link


def test_what_was_left_out_is_no_difference() -> None:
    assert not compare(
        Tree(), Tree(rules=("*.o",), omitted=(Omitted(b"big", "too large"),))
    )


def test_any_object_with_a_tree_and_contents_is_a_snapshot() -> None:
    class InMemory:
        tree = Tree()

        def content(self, path: bytes) -> "list[bytes]":
            return [path]

    assert isinstance(InMemory(), Snapshot)
    assert not isinstance(object(), Snapshot)
