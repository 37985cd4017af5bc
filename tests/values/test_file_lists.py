"""Lists of files that follow from an earlier one, against lists made of all files."""

from __future__ import annotations

import stat
from hashlib import sha256

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.workspace import FileEntry, Tree
from inner.values import (
    Listing,
    SegmentUse,
    StoredFile,
    changed,
    compare,
    differences,
    extended,
    find_in,
    fold,
    fold_near,
    replaced,
    tree_near,
)

REGULAR = stat.S_IFREG | 0o644
# So many that a few changes are few.
MANY = [b"f%02d" % n for n in range(60)]
PATHS = st.sampled_from([*MANY[::12], b"new", b"another"])
# Segments of contents: some share one, one has the same twice.
NUMBERS = {1: [500], 2: [501, 502], 3: [502, 503, 503], 4: [504], 5: []}
CHANGES = st.dictionaries(PATHS, st.sampled_from([None, *NUMBERS]), max_size=5)


def stored(path: bytes, content: int, numbers: list[int]) -> StoredFile:
    digest = sha256(b"%d" % content).digest()
    return StoredFile.of(FileEntry(path, REGULAR, content, digest), numbers, b"chain")


def followed(old: Listing, changes: dict[bytes, StoredFile | None], at: int) -> Listing:
    files = replaced(old.files, changes)
    tree = Tree({path: each.entry for path, each in files.items()}, (f"{at}",))
    return extended(old, changes, tree, at)[0]


def first() -> Listing:
    files = {p: stored(p, 1000 + n, [n + 1]) for n, p in enumerate(MANY)}
    return followed(Listing(), dict(files), 100)


def histories() -> st.SearchStrategy[list[dict[bytes, int | None]]]:
    return st.lists(CHANGES, max_size=6)


def played(history: list[dict[bytes, int | None]]) -> list[Listing]:
    lists = [first()]
    for number, step in enumerate(history, 101):
        changes = {
            path: None if content is None else stored(path, content, NUMBERS[content])
            for path, content in step.items()
            if content is not None or path in lists[-1].files
        }
        lists.append(followed(lists[-1], changes, number))
    return lists


@settings(deadline=None)
@given(histories())
def test_what_a_list_uses_is_what_its_files_use(
    history: list[dict[bytes, int | None]],
) -> None:
    for listing in played(history):
        whole, kept = SegmentUse.of(listing.files.values()), listing.use

        assert kept is not None
        assert (kept.runs, kept.size) == (whole.runs, whole.size)
        assert (kept.copies, kept.shared) == (whole.copies, whole.shared)
        assert kept.contents.keys() == whole.contents.keys()


@settings(deadline=None)
@given(histories())
def test_a_list_near_another_is_the_list_that_its_levels_make(
    history: list[dict[bytes, int | None]],
) -> None:
    lists = played(history)
    for near, listing in zip([*lists[1:], lists[0]], lists, strict=True):
        whole, made = fold(listing.parts), fold_near(listing.parts, near)

        assert made.files == whole.files == listing.files
        assert made.tree == tree_near(listing.parts, near) == listing.tree
        assert {p: find_in(listing.parts, p) for p in whole.files} == whole.files


def test_files_that_a_list_shares_with_one_near_it_are_the_same_objects() -> None:
    before = first()
    after = followed(before, {MANY[3]: stored(MANY[3], 1, [500])}, 101)

    tree = tree_near(before.parts, after)

    same = [p for p in MANY if tree.entries[p] is after.entries[p]]
    assert same == [p for p in MANY if p != MANY[3]]


@settings(deadline=None)
@given(histories())
def test_a_comparison_finds_what_a_slow_one_finds(
    history: list[dict[bytes, int | None]],
) -> None:
    lists = played(history)
    old, new = lists[0].entries, lists[-1].entries

    other = {path for path, entry in new.items() if old.get(path) != entry}
    assert {entry.path for entry in changed(old, new)} == other
    assert differences(old, new) == (other, old.keys() - new.keys())
    found = compare(Tree(old), Tree(new))
    assert {*found.added, *found.changed, *found.mode_changed} == other


def test_a_content_whose_segments_went_with_another_file_is_not_found() -> None:
    """Lists of ours have a content once; this one was written otherwise."""
    one, other = stored(b"a", 7, [1]), stored(b"b", 7, [2])

    use = SegmentUse.of([other, one]).changed([one], [])

    assert use.runs == ((2, 2),)
    assert use.find(one.digest) is None
