"""Documents: text or JSON under a name, with their versions."""

from __future__ import annotations

from datetime import timedelta

from conformance.loads import Chat
from conformance.values import alike
from holdfast.errors import Conflict, FormatMismatch, NotFound, Unstorable
from holdfast.testing import raises
from holdfast.testing.conformance.cases import LONG, Cases, untyped
from holdfast.testing.trials.hostile import HOSTILE

HOUR = timedelta(hours=1)


class DocumentTests(Cases):
    """A document holds any value that can be stored."""

    def test_text_and_json_are_given_back(self) -> None:
        contents = ["", "# Rust\n\n" + LONG, {"a": [1, None]}, [], [LONG] * 9, 5, None]
        contents += [True, 2.5, b"\0\xff", (1, "a"), {"$hf.tuple": 1}, "\0\ud800"]
        for n, content in enumerate(contents):
            saved = self.store.documents.save(f"{n}", content)
            assert self.store.documents.load(f"{n}") == saved

        for n, content in enumerate(contents):
            found = self.store.documents.load(f"{n}")
            assert alike(found.content, content)
            assert found.is_text == isinstance(content, str)

    def test_a_typed_content_is_stored_plainly_and_loaded_as_its_type(self) -> None:
        documents, chat = self.store.documents, Chat([LONG], 7)
        saved = documents.save("plan", chat, metadata={"k": 1})
        documents.save("plan", {"messages": []})

        old = documents.load("plan", "@~1", type=Chat)

        assert (old, old.content) == (saved, chat)
        assert documents.load("plan", "@~1").content == {
            "messages": [LONG], "budget": 7,
        }  # fmt: skip
        found = documents.find("plan", type=Chat)
        assert found is not None
        assert found.content == Chat([])
        assert documents.find("nothing", type=Chat) is None
        with raises(FormatMismatch):
            documents.load("plan", type=list[int])

    def test_markdown_and_json_of_one_name_are_two_documents(self) -> None:
        documents = self.store.documents
        documents.save("memory/notes.md", "# Notes")
        documents.save("memory/notes.json", {"a": 1})

        assert documents.load("memory/notes.md").content == "# Notes"
        assert documents.load("memory/notes.json").content == {"a": 1}
        listed = documents.list("memory")
        assert [found.name for found in listed] == [
            "memory/notes.json", "memory/notes.md",
        ]  # fmt: skip

    def test_a_document_is_there_after_reopening(self) -> None:
        saved = self.store.documents.save("a/b", {"text": LONG}, metadata={"k": LONG})

        assert self.reopen().documents.load("a/b") == saved

    def test_saving_gives_version_and_times(self) -> None:
        first = self.store.documents.save("notes/rust", "one")
        begun = self.clock.now
        self.clock.advance(HOUR)

        second = self.store.documents.save("notes/rust", "two")

        assert (first.version, second.version) == (1, 2)
        assert (second.created_at, second.updated_at) == (begun, self.clock.now)
        assert (second.name, second.category) == ("notes/rust", "notes")
        assert second.checkpoint == self.store.documents.thread("notes/rust").get().id

    def test_a_document_that_is_not_there(self) -> None:
        assert self.store.documents.find("nothing") is None
        for call in (self.store.documents.load, self.store.documents.history):
            with raises(NotFound) as missing:
                call("nothing")
            assert "nothing" in str(missing.error)

    def test_older_versions_can_be_loaded(self) -> None:
        for n in range(5):
            self.store.documents.save("d", f"{n} {LONG}", metadata={"n": n})

        history = self.store.documents.history("d")

        assert [c.step for c in history] == [5, 4, 3, 2, 1]
        for n, checkpoint in enumerate(reversed(history)):
            old = self.store.documents.load("d", checkpoint)
            assert (old.content, old.metadata) == (f"{n} {LONG}", {"n": n})
            assert (old.version, old.checkpoint) == (n + 1, checkpoint.id)
        assert self.store.documents.load("d", "@~4").version == 1
        page = self.store.documents.history("d", limit=2)
        rest = self.store.documents.history("d", before=page.cursor)
        assert [c.step for c in (*page, *rest)] == [5, 4, 3, 2, 1]

    def test_the_metadata_stay_without_new_ones(self) -> None:
        documents = self.store.documents
        documents.save("d", "one", metadata={"author": "ann"})

        assert documents.save("d", "two").metadata == {"author": "ann"}
        assert documents.load("d").metadata == {"author": "ann"}
        assert documents.save("d", "three", metadata={"k": 1}).metadata == {"k": 1}
        assert documents.save("d", "four", metadata={}).metadata == {}
        assert documents.load("d").metadata == {}

    def test_a_document_can_be_expected_to_be_as_it_was(self) -> None:
        documents = self.store.documents
        first = documents.save("d", "one", expect=None)
        assert first.checkpoint is not None
        second = documents.save("d", "two", expect=first.checkpoint)

        with raises(Conflict, "head_moved") as refused:
            documents.save("d", "three", expect=first.checkpoint)
        with raises(Conflict):
            documents.save("d", "three", expect=None)
        with raises(NotFound):
            documents.save("new", "x", expect="nothing")

        assert refused.error.found == documents.thread("d").get()
        assert documents.load("d") == second
        assert documents.find("new") is None

    def test_a_deleted_document_can_be_saved_again(self) -> None:
        documents = self.store.documents
        documents.save("d", "old " + LONG, metadata={"k": 1})
        self.clock.advance(HOUR)

        assert documents.delete("d", "d", "nothing") == 1
        assert documents.delete("d") == 0
        assert documents.find("d") is None
        assert self.store.stats().segments == 0
        new = documents.save("d", "new")
        assert (new.version, new.metadata) == (1, {})
        assert new.created_at == self.clock.now

    def test_what_cannot_be_kept_changes_nothing(self) -> None:
        documents = self.store.documents
        documents.save("d", "one")

        with raises(Unstorable):
            documents.save("d", {"f": print})
        for wrong in untyped([1], "text", {"f": print}):
            with raises(Unstorable):
                documents.save("d", "two", metadata=wrong)
        for wrong in untyped("", "a\0b", "\ud800", "x" * 504, 5, None):
            with raises(Unstorable):
                documents.save(wrong, "x")
            with raises(Unstorable):
                documents.load(wrong)
            with raises(Unstorable):
                documents.delete(wrong)

        assert documents.load("d").content == "one"
        assert self.store.stats().documents == 1
        assert documents.save("x" * 503, "fits").version == 1

    def test_a_thread_that_holds_no_document_is_not_taken_for_one(self) -> None:
        self.store.thread("document:d").save(["a list"])

        with raises(FormatMismatch):
            self.store.documents.load("d")


class CategoryTests(Cases):
    """The category of a document is the part of its name before the slash."""

    def names(self, category: str | None = None, *, nested: bool = False) -> set[str]:
        """The names of the documents in a category."""
        page = self.store.documents.list(category, nested=nested, limit=None)
        return {summary.name for summary in page}

    def test_documents_are_listed_by_category(self) -> None:
        for name in ("top", "a/1", "a/2", "a/b/3", "a/b/c/4", "ab/5", "b/6", "a"):
            self.store.documents.save(name, name)
        self.store.thread("a/thread").save({})
        self.store.thread("document:a/thread").save({})

        assert self.names() == self.names(nested=True)
        assert len(self.names()) == 8
        assert self.names("a") == {"a/1", "a/2"}
        assert self.names("a", nested=True) == {"a/1", "a/2", "a/b/3", "a/b/c/4"}
        assert self.names("a/b") == {"a/b/3"}
        assert self.names("a/b", nested=True) == {"a/b/3", "a/b/c/4"}
        assert self.names("") == {"top", "a"}
        assert self.names("nothing") == self.names("A") == self.names("a/") == set()

    def test_a_summary_has_everything_but_the_content(self) -> None:
        self.store.documents.save("a/d", "old")
        self.clock.advance(HOUR)
        saved = self.store.documents.save("a/d", LONG, metadata={"k": 1})

        [summary] = self.store.documents.list("a")

        assert (summary.name, summary.category) == ("a/d", "a")
        assert (summary.version, summary.metadata) == (2, {"k": 1})
        assert summary.updated_at == saved.updated_at == self.clock.now
        assert summary.size > len(LONG)

    def test_the_last_used_document_comes_first_in_pages(self) -> None:
        for n in range(12):
            self.store.documents.save(f"{'even' if n % 2 == 0 else 'odd'}/{n:02}", n)
        self.store.documents.save("odd/01", "again")

        found: list[str] = []
        after: int | None = None
        while True:
            page = self.store.documents.list("odd", limit=2, after=after)
            assert len(page) <= 2
            found += [summary.name for summary in page]
            after = page.cursor
            if after is None:
                break

        assert found == [f"odd/{n}" for n in ("01", "11", "09", "07", "05", "03")]
        for wrong in untyped(0, -1, 1.5, "all", True):
            with raises(Unstorable):
                self.store.documents.list(limit=wrong)

    def test_any_name_of_a_document_is_only_a_name(self) -> None:
        names = [*HOSTILE, "/", "//", "a//b", "/a", "a/", "../x", "x.md", "x.json", "x"]
        for n, name in enumerate(names):
            self.store.documents.save(name, n)

        for n, name in enumerate(names):
            found = self.store.documents.load(name)
            assert (found.name, found.content) == (name, n)
            assert name in self.names(found.category)
        assert self.names() == {*names}
        assert self.store.stats().documents == len(names)
        for name in names:
            assert self.store.documents.delete(name) == 1
        assert self.names() == set()
