"""Merges: what a thread takes over from a fork, and what it refuses to decide."""

from __future__ import annotations

from typing import Any

from holdfast import ABSENT, MergeConflict, Message
from holdfast.errors import Conflict, NotFound, Unstorable
from holdfast.testing._cases import LONG, Cases
from holdfast.testing._raises import raises
from support.snapshots import MemorySnapshot

BIG = b"".join(b"line %d\n" % n for n in range(5_000))


class MergedForkTests(Cases):
    """A merge of what does not contradict."""

    def test_a_merge_takes_what_each_side_has_changed(self) -> None:
        chat = self.thread()
        chat.save({"plan": "a", "notes": {"x": 1}, "text": LONG})
        fork = chat.fork("fork")
        chat.amend(values={"plan": "b"})
        fork.amend(values={"notes": {"x": 1, "y": 2}, "new": LONG})

        merged = chat.merge(fork)

        expected = {"plan": "b", "notes": {"x": 1, "y": 2}, "text": LONG, "new": LONG}
        assert chat.load() == merged.state == expected
        assert merged.checkpoint == chat.head
        assert merged.conflicts == ()
        assert self.store.verify().ok

    def test_a_merge_is_a_save_that_names_its_parents(self) -> None:
        base = self.thread().save({"n": 1})
        fork = self.thread().fork("fork")
        ours = self.thread().save({"n": 1, "a": 1})
        theirs = fork.save({"n": 1, "b": 1})

        made = self.thread().merge(fork, label="both", metadata={"why": "test"})

        saved = made.checkpoint
        assert saved is not None
        assert (saved.kind, saved.label, saved.parent) == ("merge", "both", ours.id)
        names = {"base": base.id, "ours": ours.id, "theirs": theirs.id}
        parents = {**names, "thread": "fork"}
        assert saved.metadata == {"why": "test", "merge": parents}
        assert self.thread().undo().id == ours.id

    def test_a_fork_that_changed_nothing_changes_nothing(self) -> None:
        chat = self.thread()
        chat.save({"n": 1})
        fork = chat.fork("fork")
        head = chat.save({"n": 2})

        made = chat.merge(fork)

        assert (made.checkpoint, made.is_needed) == (None, False)
        assert chat.head == head

    def test_a_thread_that_changed_nothing_gets_the_state_of_the_fork(self) -> None:
        chat = self.thread()
        chat.save({"m": [1], "gone": LONG})
        fork = chat.fork("fork")
        fork.save({"m": [3, 1], "new": LONG})

        chat.merge(fork)

        assert chat.load() == fork.load()

    def test_an_earlier_checkpoint_of_a_fork_can_be_merged(self) -> None:
        chat = self.thread()
        chat.save({"n": 1})
        fork = chat.fork("fork")
        first = fork.save({"n": 1, "a": 1})
        fork.save({"n": 1, "a": 1, "b": 1})

        chat.merge(first)

        assert chat.load() == {"n": 1, "a": 1}

    def test_what_was_merged_is_the_base_of_the_next_merge(self) -> None:
        chat = self.thread()
        chat.save({"n": 1, "here": 1})
        fork = chat.fork("fork")
        chat.amend(values={"here": 2})
        fork.amend(values={"n": 2})
        chat.merge(fork)
        fork.amend(values={"n": 3})

        again = chat.merge(fork)

        assert chat.load() == {"n": 3, "here": 2}
        assert again.base.metadata == {}
        assert again.base.thread == "fork"
        fork.merge(chat)
        assert fork.load() == chat.load()
        assert not chat.merge(fork).conflicts

    def test_a_merge_of_conversations_counts_the_messages_anew(self) -> None:
        talks = self.store.conversations
        talks.create("a", messages=[Message.user("hello")])
        chat = talks.thread("a")
        chat.fork("conversation:b")
        talks.add("b", Message.assistant("hi"))
        talks.update("a", title="here")

        chat.merge(talks.thread("b"))

        loaded = talks.load("a")
        assert (loaded.title, len(loaded.messages)) == ("here", 2)
        [listed] = [talk for talk in talks.list() if talk.id == "a"]
        assert (listed.messages, listed.exchanges) == (2, 1)


class MergeConflictTests(Cases):
    """A merge that needs a decision."""

    def parted(self) -> None:
        """Two lines that changed the plan differently, and one of them a task."""
        chat = self.thread()
        chat.save({"plan": "a", "tasks": [{"id": 1, "done": False}], "n": 1})
        fork = chat.fork("fork")
        chat.amend(values={"plan": "b"})
        fork.amend(values={"plan": "c", "n": 2})
        fork.amend(values={"tasks": [{"id": 1, "done": True}, {"id": 2}]})

    def test_nothing_is_saved_before_all_is_decided(self) -> None:
        self.parted()
        chat, fork = self.thread(), self.thread("fork")
        chat.amend(values={"n": 3})
        before = self.store.changes().cursor

        with raises(Conflict, "merge_conflict") as refused:
            chat.merge(fork, resolve={"plan": "d"})

        assert refused.error.conflicts == (MergeConflict(("n",), 1, 3, 2),)
        assert self.store.changes().cursor == before

    def test_a_preview_has_the_conflicts_and_what_would_change(self) -> None:
        self.parted()
        before = self.store.changes().cursor

        found = self.thread().merge(self.thread("fork"), dry_run=True)

        assert found.conflicts == (MergeConflict(("plan",), "a", "b", "c"),)
        assert [str(change) for change in found.changes.changes] == [
            "~ tasks[0].done  false -> true",
            '+ tasks[1]  {"id": 2}',
            "~ n  1 -> 2",
        ]
        assert found.checkpoint is None
        assert self.store.changes().cursor == before

    def test_conflicts_are_decided_by_path_by_a_function_or_by_side(self) -> None:
        rest = {"tasks": [{"id": 1, "done": True}, {"id": 2}], "n": 2}
        self.parted()
        chat, fork = self.thread(), self.thread("fork")

        chat.merge(fork, resolve={"plan": "d"})
        assert chat.load() == {"plan": "d", **rest}
        chat.undo()
        chat.merge(fork, resolve=lambda found: f"{found.ours} and {found.theirs}")
        assert chat.load() == {"plan": "b and c", **rest}
        chat.undo()
        chat.merge(fork, resolve=lambda _: ABSENT)
        assert chat.load() == rest
        chat.undo()
        chat.merge(fork, prefer="ours")
        assert chat.load() == {"plan": "b", **rest}
        chat.undo()
        made = chat.merge(fork, resolve=lambda found: found, prefer="theirs")
        assert chat.load() == {"plan": "c", **rest}
        assert [conflict.where for conflict in made.resolved] == ["plan"]

    def test_threads_that_share_nothing_are_not_merged(self) -> None:
        self.filled(1)
        self.filled(1, "other")

        with raises(NotFound, "no_fork_point"):
            self.thread().merge(self.thread("other"))
        with raises(NotFound):
            self.thread().merge(self.thread("nothing"))

    def test_a_decision_that_fits_no_conflict_is_refused(self) -> None:
        self.parted()
        chat, fork = self.thread(), self.thread("fork")

        with raises(Unstorable):
            chat.merge(fork, resolve={"plan": "d", "plans": 1})
        with raises(Unstorable):
            chat.merge(fork, prefer="mine")
        with raises(Unstorable):
            chat.merge(fork, resolve="ours")
        with raises(TypeError):
            chat.merge(fork, expect=None)  # type: ignore[call-arg]
        assert chat.load()["plan"] == "b"


class MergedFileTests(Cases):
    """A merge of threads whose states have files."""

    def parted_files(self) -> tuple[Any, Any]:
        chat = self.thread()
        start = {"main.py": b"one", "lib/a.py": b"a", "big": BIG, "old": b"old"}
        chat.save({"n": 1}, files=MemorySnapshot(start))
        fork = chat.fork("fork")
        del start["old"]
        new = {"main.py": b"two", "docs/new.md": BIG + b"new", "big": BIG}
        fork.save({"n": 1}, files=MemorySnapshot({**start, **new}))
        return chat, fork

    def test_files_are_merged_path_by_path(self) -> None:
        chat, fork = self.parted_files()
        mine = {"main.py": b"one", "lib/a.py": b"A", "big": BIG, "old": b"old"}
        chat.save({"n": 2}, files=MemorySnapshot(mine))

        made = chat.merge(fork)

        assert list(chat.files()) == ["big", "docs/new.md", "lib/a.py", "main.py"]
        wanted = ["main.py", "lib/a.py", "docs/new.md", "big"]
        found = [b"two", b"A", BIG + b"new", BIG]
        assert chat.read_files(wanted) == found
        assert chat.load() == {"n": 2}
        assert str(made).splitlines() == [
            "+ file docs/new.md",
            "- file old",
            "~ file main.py",
            "no difference",
        ]
        assert self.store.verify().ok
        chat.undo()
        assert chat.read_file("main.py") == b"one"

    def test_a_file_that_both_changed_is_a_conflict(self) -> None:
        chat, fork = self.parted_files()
        mine = {"main.py": b"three", "big": BIG, "old": b"new"}
        chat.save({"n": 2}, files=MemorySnapshot(mine))

        with raises(Conflict, "merge_conflict") as refused:
            chat.merge(fork)

        places = [conflict.where for conflict in refused.error.conflicts]
        assert places == ['[file "main.py"]', '[file "old"]']
        shown = '! [file "old"]  ours 3 bytes, theirs absent, base 3 bytes'
        assert str(refused.error.conflicts[1]) == shown
        with raises(Unstorable):
            chat.merge(fork, resolve=lambda _: b"some bytes")
        chat.merge(fork, resolve={'[file "old"]': ABSENT}, prefer="theirs")
        assert list(chat.files()) == ["big", "docs/new.md", "main.py"]
        assert chat.read_file("main.py") == b"two"

    def test_files_of_the_fork_are_taken_by_a_thread_without_any(self) -> None:
        chat = self.thread()
        chat.save({"n": 1})
        fork = chat.fork("fork")
        fork.save({"n": 1}, files=MemorySnapshot({"a": b"1", "b": BIG}))
        chat.save({"n": 2})

        chat.merge(fork)

        assert chat.read_files(["a", "b"]) == [b"1", BIG]
        assert chat.load() == {"n": 2}

    def test_a_file_and_a_folder_of_one_name_are_a_conflict(self) -> None:
        chat = self.thread()
        chat.save({}, files=MemorySnapshot({"x": b"x"}))
        fork = chat.fork("fork")
        chat.save({}, files=MemorySnapshot({"x": b"x", "a": b"file"}))
        fork.save({}, files=MemorySnapshot({"x": b"x", "a/b": b"inside"}))

        found = chat.merge(fork, dry_run=True)

        assert [one.where for one in found.conflicts] == ['[file "a/b"]']
        chat.merge(fork, prefer="ours")
        assert list(chat.files()) == ["a", "x"]
        chat.undo()
        chat.merge(fork, prefer="theirs")
        assert list(chat.files()) == ["a/b", "x"]
