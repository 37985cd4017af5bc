"""Forks share the history up to where they start."""

from __future__ import annotations

from holdfast.errors import Conflict, NotFound
from holdfast.testing.conformance.cases import LONG, Cases, raises, steps


class ForkTests(Cases):
    """A new thread from a checkpoint of another."""

    def test_a_fork_begins_at_the_head(self) -> None:
        self.filled(3)

        fork = self.thread().fork("fork")

        assert fork.id == "fork"
        assert fork.load() == {"n": 3}
        assert fork.head == self.thread().head

    def test_a_fork_begins_at_any_checkpoint(self) -> None:
        first, second, _ = self.filled(3)
        chat = self.thread()
        chat.label("x", second)

        assert chat.fork("a", at=first).load() == {"n": 1}
        assert chat.fork("b", at="label:x").load() == {"n": 2}
        assert chat.fork("c", at="@~1").load() == {"n": 2}

    def test_a_fork_does_not_take_the_name_of_a_thread_that_only_recorded(self) -> None:
        self.filled(1)
        other = self.thread("other")
        other.record("call", 1)

        with raises(Conflict, code="thread_exists"):
            self.thread().fork("other")

        assert (other.head, other.journal()) == (None, {"call": 1})

    def test_a_fork_copies_nothing(self) -> None:
        chat = self.thread()
        for n in range(20):
            chat.append(m=[f"{n} {LONG}"])
        before = self.store.stats()

        chat.fork("fork")

        after = self.store.stats()
        assert after.threads == before.threads + 1
        assert (after.checkpoints, after.segments, after.stored_bytes) == (
            before.checkpoints,
            before.segments,
            before.stored_bytes,
        )

    def test_a_fork_shares_the_history_before_it(self) -> None:
        saved = self.filled(4)
        fork = self.thread().fork("fork", at=saved[1])
        own = fork.save({"n": "own"})

        assert list(fork.history()) == [own, saved[1], saved[0]]
        assert list(fork.history(all=True)) == [own, saved[1], saved[0]]
        assert (own.parent, own.step, own.thread) == (saved[1].id, 3, "fork")

    def test_a_history_goes_on_page_by_page_into_the_source(self) -> None:
        saved = self.filled(4)
        fork = self.thread().fork("fork")
        own = [fork.save({"n": n}) for n in (5, 6)]
        everything = [*own[::-1], *saved[::-1]]

        for all_ in (False, True):
            first = fork.history(3, all=all_)
            second = fork.history(3, all=all_, before=first[-1])
            assert [*first, *second] == everything

    def test_fork_and_source_do_not_see_each_others_saves(self) -> None:
        self.filled(2)
        chat = self.thread()
        fork = chat.fork("fork")
        ours, theirs = chat.save({"n": "chat"}), fork.save({"n": "fork"})

        assert (chat.load(), fork.load()) == ({"n": "chat"}, {"n": "fork"})
        with raises(NotFound, "foreign"):
            fork.load(ours)
        with raises(NotFound, "foreign"):
            chat.load(theirs.id)

    def test_a_fork_knows_where_it_comes_from(self) -> None:
        first, _ = self.filled(2)
        self.thread().fork("fork", at=first)

        about, source = self.thread("fork").about, self.thread().about

        assert about is not None
        assert about.forked_from == ("chat", first.id)
        assert source is not None
        assert source.forked_from is None

    def test_a_fork_begins_with_what_its_source_was_described_as(self) -> None:
        chat = self.store.thread("chat", kind="agent", owner="me", metadata={"k": 1})
        chat.save({})

        about = chat.fork("fork").about

        assert about is not None
        assert (about.kind, about.owner, about.metadata) == ("agent", "me", {"k": 1})

    def test_a_fork_into_a_name_that_is_taken_is_a_conflict(self) -> None:
        self.filled(2)
        other = self.thread("other").save({"n": "other"})

        for name in ("other", "chat"):
            with raises(Conflict, "thread_exists"):
                self.thread().fork(name, at="@~1")

        assert self.thread("other").head == other
        assert self.thread().load() == {"n": 2}

    def test_a_fork_may_take_the_name_of_a_deleted_thread(self) -> None:
        self.thread("old").save({"n": "old"}, id="a")
        self.thread("old").load()
        self.thread("old").delete()
        self.thread().save({"n": "new"}, id="a")

        fork = self.thread().fork("old")

        assert fork.load() == {"n": "new"}
        fork.append(m=["more"])
        assert fork.load() == {"n": "new", "m": ["more"]}

    def test_a_fork_under_a_deleted_name_does_not_see_the_old_saves(self) -> None:
        saved = self.filled(3)
        self.thread().fork("b", at=saved[2])
        self.thread().delete()

        again = self.thread("b").fork("chat", at=saved[0])

        assert [c.id for c in again.history(all=True)] == [saved[0].id]
        with raises(NotFound):
            again.load(saved[2].id)

    def test_forks_that_append_to_the_same_list_do_not_mix(self) -> None:
        chat = self.thread()
        chat.append(m=["start" + LONG])
        forks = [chat.fork(f"fork {n}") for n in range(5)]
        for turn in range(5):
            for thread in [chat, *forks]:
                thread.append(m=[f"{thread.id} {turn} {LONG}"])

        for thread in [chat, *forks]:
            assert thread.load()["m"] == [
                "start" + LONG,
                *(f"{thread.id} {turn} {LONG}" for turn in range(5)),
            ]

    def test_forks_of_forks_share_everything_before_them(self) -> None:
        thread = self.thread()
        for level in range(4):
            thread.append(m=[f"{level} {LONG}"])
            thread = thread.fork(f"level {level}")
        thread.append(m=["end" + LONG])

        assert steps(thread.history()) == [5, 4, 3, 2, 1]
        assert steps(thread.history(all=True)) == [5, 4, 3, 2, 1]
        assert [c.thread for c in thread.history()] == [
            "level 3",
            "level 2",
            "level 1",
            "level 0",
            "chat",
        ]
        assert thread.load()["m"] == [*(f"{n} {LONG}" for n in range(4)), "end" + LONG]

    def test_a_fork_finds_the_marks_it_inherited(self) -> None:
        chat = self.thread()
        chat.save({"n": 1}, label="x", tags=["t"])
        fork = chat.fork("fork")
        chat.save({"n": 2}, label="x", tags=["t"])

        assert fork.load("label:x") == fork.load("tag:t") == {"n": 1}
        assert steps(fork.history(label="x")) == [1]
        assert chat.load("label:x") == {"n": 2}

    def test_rewinding_a_fork_into_its_source_is_fine(self) -> None:
        saved = self.filled(3)
        chat = self.thread()
        fork = chat.fork("fork")
        fork.save({"n": "fork"})

        fork.rewind(saved[0])
        fork.save({"n": "again"})

        assert steps(fork.history()) == [2, 1]
        assert chat.load() == {"n": 3}
        assert steps(fork.history(all=True)) == [2, 4, 3, 2, 1]

    def test_a_fork_rewound_into_its_source_finds_its_way_back(self) -> None:
        saved = self.filled(4)
        fork = self.thread().fork("fork")
        fork.rewind(saved[0])

        assert fork.load(saved[2]) == {"n": 3}
        assert list(fork.history(all=True)) == saved[::-1]
        assert fork.undo() == saved[3]

    def test_a_fork_has_a_journal_of_its_own(self) -> None:
        self.filled(1)
        chat = self.thread()
        chat.record("key", "chat")

        fork = chat.fork("fork")

        assert fork.recorded("key") is None
        assert fork.record("key", "fork") == "fork"
        assert chat.recorded("key") == "chat"


class ForkedDeletionTests(Cases):
    """The source can be deleted: forks keep the checkpoints they share with it."""

    def test_a_fork_outlives_its_source(self) -> None:
        chat = self.thread()
        for n in range(4):
            chat.append(m=[f"{n} {LONG}"])
        fork = chat.fork("fork", at="@~1")

        assert chat.delete() == 1

        assert fork.load() == {"m": [f"{n} {LONG}" for n in range(3)]}
        assert steps(fork.history()) == [3, 2, 1]
        assert self.store.stats().checkpoints == 3
        fork.append(m=["more" + LONG])
        assert len(fork.load()["m"]) == 4

    def test_a_fork_outlives_its_source_after_reopening(self) -> None:
        chat = self.thread()
        chat.append(m=["a" + LONG])
        chat.fork("fork").append(m=["b" + LONG])
        chat.delete()

        fork = self.reopen().thread("fork")

        assert fork.load() == {"m": ["a" + LONG, "b" + LONG]}
        assert fork.load("@~1") == {"m": ["a" + LONG]}
        about = fork.about
        assert about is not None
        assert about.forked_from is not None
        assert about.forked_from.thread == "chat"

    def test_the_last_of_a_family_takes_everything_with_it(self) -> None:
        chat = self.thread()
        chat.append(m=["a" + LONG])
        fork = chat.fork("fork")
        fork.append(m=["b" + LONG])
        chat.delete()
        fork.delete()

        facts = self.store.stats()
        assert (facts.threads, facts.checkpoints, facts.segments) == (0, 0, 0)

    def test_a_fork_in_the_middle_may_go(self) -> None:
        chat = self.thread()
        chat.append(m=["a" + LONG])
        middle = chat.fork("middle")
        middle.append(m=["b" + LONG])
        last = middle.fork("last")
        last.append(m=["c" + LONG])
        middle.append(m=["gone" + LONG])

        middle.delete()

        assert last.load() == {"m": ["a" + LONG, "b" + LONG, "c" + LONG]}
        assert steps(last.history()) == [3, 2, 1]
        assert chat.load() == {"m": ["a" + LONG]}

    def test_a_rewound_fork_keeps_what_it_began_with(self) -> None:
        saved = self.filled(4)
        fork = self.thread().fork("fork", at=saved[2])
        fork.rewind(saved[0])

        self.thread().delete()

        assert [c.id for c in fork.history(all=True)] == [c.id for c in saved[2::-1]]
        assert fork.undo().id == saved[2].id

    def test_a_hard_rewind_keeps_what_a_rewound_fork_began_with(self) -> None:
        saved = self.filled(4)
        fork = self.thread().fork("fork", at=saved[2])
        fork.rewind(saved[0])

        self.thread().rewind(saved[0], hard=True)

        assert fork.undo().id == saved[2].id
        assert fork.load() == {"n": 3}

    def test_several_of_a_family_go_at_once(self) -> None:
        self.filled(2)
        chat = self.thread()
        chat.fork("a").save({"n": "a"})
        fork = chat.fork("b", at="@~1")

        assert self.store.delete("chat", "a") == 2

        assert fork.load() == {"n": 1}
        assert self.store.stats().checkpoints == 1

    def test_the_whole_line_is_listed_when_its_fork_point_is_gone(self) -> None:
        saved = self.filled(3)
        chat = self.thread()
        fork = chat.fork("fork", at=saved[1])
        own = fork.save({"n": "own"})
        chat.delete(saved[1])

        assert [c.id for c in fork.history()] == [own.id, saved[0].id]
        assert list(fork.history(all=True)) == list(fork.history())
