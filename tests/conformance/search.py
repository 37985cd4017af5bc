"""Searching messages: what is decided above the index."""

from __future__ import annotations

from typing import Any

from holdfast import Match
from holdfast.agents import Agent
from holdfast.errors import Unstorable
from holdfast.messages import Attachment, Message, ToolCall
from holdfast.testing._cases import untyped
from holdfast.testing._raises import raises
from holdfast.testing._search import SearchCases, places, user
from holdfast.testing._search_index import SearchUpkeepCases


class SearchedTextTests(SearchCases):
    """Which texts of a message are found, and in which cases."""

    def test_a_message_is_found_once_however_often_it_holds_the_text(self) -> None:
        self.talk("c", "echo echo echo")

        assert self.found("echo") == [("c", 0)]

    def test_cases_are_folded_as_unicode_does_it(self) -> None:
        self.talk("c", "Straße und Maß", "İstanbul", "ΣΊΣΥΦΟΣ", "ﬁne", "café")

        assert self.found("STRASSE") == [("c", 0)]
        assert self.found("MASS") == [("c", 0)]
        assert self.found("i\u0307stanbul") == [("c", 1)]
        assert self.found("\u0307stan") == [("c", 1)]
        assert self.found("σίσυφος") == [("c", 2)]
        assert self.found("FINE") == [("c", 3)]
        assert self.found("CAFÉ") == [("c", 4)]
        assert self.found("cafe\u0301") == []  # looks alike and is another text

    def test_messages_of_every_dialect_are_searched(self) -> None:
        typed = Message(
            role="assistant",
            content="typed needle",
            tool_calls=[ToolCall(id="1", name="look", arguments={"q": "an argument"})],
        )
        call = {"id": "2", "type": "function", "function": {"name": "f"}}
        messages: list[Any] = [
            typed,
            {"role": "tool", "tool_call_id": "1", "content": "result needle"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            user([{"type": "text", "text": "part needle"}]),
            user([{"type": "tool_result", "tool_use_id": "2", "content": "Needle"}]),
            {"type": "function_call_output", "call_id": "3", "output": "item needle"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]},
            {"unknown": "shape"},
        ]
        self.store.conversations.create("c", messages=messages)

        found = self.store.search("needle")

        assert [match.position for match in found] == [5, 4, 3, 1, 0]
        assert [match.role for match in found] == [
            "tool", "tool", "user", "tool", "assistant",
        ]  # fmt: skip
        loaded = self.store.conversations.load("c").messages
        assert [match.message for match in found] == [
            loaded[match.position] for match in found
        ]
        assert self.found("thinking") == []

    def test_a_message_comes_with_its_attachments(self) -> None:
        file = Attachment(name="notes.txt", content="attached " * 500)
        message = Message(role="user", content="see the file", attachments=[file])
        self.store.conversations.create("c", messages=[message])

        [match] = self.store.search("the file")

        assert match.message == self.store.conversations.load("c").messages[0]

    def test_nothing_is_found_across_messages(self) -> None:
        self.talk("c", "one", "two")

        assert self.found('"one\ntwo"') == []
        assert self.found("one two") == []
        assert self.found("onetwo") == []

    def test_a_query_is_text(self) -> None:
        for wrong in untyped("", None, 7, b"bytes", ["list"]):
            with raises(Unstorable):
                self.store.search(wrong)

    def test_limits_and_names_are_checked(self) -> None:
        for wrong in untyped(0, -1, 1.5, "3", True):
            with raises(Unstorable):
                self.store.search("text", limit=wrong)
        for name in ("agent", "owner", "conversation", "per"):
            with raises(Unstorable):
                self.store.search("text", **untyped({name: ""})[0])


class SnippetTests(SearchCases):
    """How a match is shown."""

    def test_a_match_says_where_it_is(self) -> None:
        self.clock.now = 1000
        self.talk("c", "one", "two hundred", title="Numbers", owner="me", agent="a")

        [match] = self.store.search("HUNDRED")

        loaded = self.store.conversations.load("c")
        assert match == Match(
            conversation="c",
            position=1,
            role="user",
            snippet="two hundred",
            message=loaded.messages[1],
            title="Numbers",
            owner="me",
            agent="a",
            updated_at=1000,
            thread="conversation:c",
        )

    def test_a_snippet_shows_what_is_around(self) -> None:
        around = "before " * 50, "after " * 50
        self.talk("c", f"{around[0]}needle {around[1]}", "  a\n\n\tsmall   needle\n")

        short, long = self.store.search("NEEDLE")

        assert short.snippet == "a small needle"
        assert "before needle after" in long.snippet
        assert long.snippet[0] == long.snippet[-1] == "…"
        assert 80 <= len(long.snippet) <= 120

    def test_a_snippet_shows_the_longest_of_several_words(self) -> None:
        self.talk("c", f"a to b {'before ' * 50} Lyon Central to Paris")

        [words] = self.store.search("to lyon central paris")
        [together] = self.store.search("to b")

        assert words.snippet.endswith("before Lyon Central to Paris")
        assert together.snippet.startswith("a to b before")

    def test_a_snippet_is_cut_where_folding_makes_texts_longer(self) -> None:
        self.talk("c", "ß" * 200 + " needle İİ " + "İ" * 200)

        [match] = self.store.search("needle i\u0307")

        assert "ß needle İİ İ" in match.snippet
        assert len(match.snippet) <= 120

    def test_a_snippet_of_a_long_query_is_not_longer(self) -> None:
        self.talk("c", "x" * 1000)

        [match] = self.store.search("X" * 900)

        assert match.snippet.strip("…") == "x" * len(match.snippet.strip("…"))
        assert 80 <= len(match.snippet) <= 120


class SearchScopeTests(SearchCases):
    """Which threads are searched, and how one is paged through."""

    def test_one_conversation_is_paged_through_while_it_grows(self) -> None:
        self.talk("c", *(f"needle {n}" for n in range(5)))
        self.talk("other", "needle")
        page = self.store.search("needle", conversation="c", limit=2)
        self.store.conversations.add("c", user("needle 5"))

        rest = self.store.search("needle", conversation="c", after=page.cursor)

        assert places(page) == [("c", 4), ("c", 3)]
        assert places(rest) == [("c", 2), ("c", 1), ("c", 0)]

    def test_archived_ones_are_searched_unless_asked_otherwise(self) -> None:
        self.talk("a", "needle")
        self.talk("b", "needle")
        self.store.conversations.archive("a")

        assert self.found("needle") == [("a", 0), ("b", 0)]
        assert self.found("needle", archived=True) == [("a", 0)]
        assert self.found("needle", archived=False) == [("b", 0)]

    def test_only_messages_are_searched(self) -> None:
        self.store.documents.save("needle", "needle")
        self.store.thread("conversation:odd", kind="conversation").save({"messages": 7})
        self.store.thread("conversation:one", kind="conversation").save(["needle"])
        self.store.thread("needle").save({"plan": "needle", "messages": "needle"})

        assert self.found("needle") == []

    def test_threads_of_any_kind_with_messages_are_found(self) -> None:
        chat = self.store.thread("p", kind="chat")
        chat.save({"messages": [user("needle")]})
        self.talk("c", "needle")

        for query in ("needle", "ne"):
            assert self.found(query) == [("c", 0), ("p", 0)]
            assert places(self.store.conversations.search(query)) == [("c", 0)]
        chat.append(messages=[user("one more needle")])
        assert self.found("needle", limit=2) == [("p", 1), ("p", 0)]

    def test_threads_of_langgraph_are_found_among_conversations(self) -> None:
        self.talk("a", "needle")
        self.store.thread("b", kind="langgraph").save({"messages": [user("needle")]})
        self.talk("c", "needle")

        first = self.store.search("needle", limit=1)
        second = self.store.search("needle", limit=1, after=first.cursor)
        third = self.store.search("needle", limit=1, after=second.cursor)

        assert places([*first, *second, *third]) == [("c", 0), ("b", 0), ("a", 0)]
        assert second[0].thread == "b"
        assert places(self.store.conversations.search("needle")) == [("c", 0), ("a", 0)]

    def test_what_an_agent_has_pinned_is_not_found_twice(self) -> None:
        agents = self.store.agents
        agents.save(Agent(id="a"))
        self.talk("c", "needle", agent="a")
        agents.checkpoint("a")

        assert self.found("needle") == [("c", 0)]


class IndexingTests(SearchUpkeepCases):
    """Bringing the index up to date: what is shown and reported."""

    def test_a_store_in_which_nothing_was_saved_is_searched(self) -> None:
        assert self.found("needle") == []
        assert self.found("needle") == []

        self.talk("c", "needle")
        assert self.found("needle") == [("c", 0)]

    def test_an_emptied_conversation_has_nothing(self) -> None:
        self.begin()
        conversation = self.store.conversations.load("c")
        conversation.messages.clear()
        self.store.conversations.save(conversation)

        assert self.found("message") == []
        assert self.found("needle") == [("d", 0)]

    def test_a_title_changes_without_the_messages(self) -> None:
        self.begin()
        self.store.conversations.update("c", title="Titled")

        first, second = self.store.search("needle")

        assert (first.conversation, first.title) == ("c", "Titled")
        assert (second.conversation, second.title) == ("d", None)

    def test_progress_is_reported_while_the_index_is_made(self) -> None:
        self.must_be_able("search")
        self.begin()
        reported: list[tuple[int, int]] = []
        for n in range(3):
            self.talk(f"{n}", "text")

        def tell(done: int, total: int) -> None:
            reported.append((done, total))

        self.store.search("text", progress=tell)
        self.store.search("text", progress=tell)

        assert reported[-1] == (3, 3)
        assert reported == sorted(reported)

    def test_a_search_can_be_given_up_and_repeated(self) -> None:
        self.must_be_able("search")
        self.begin()
        self.talk("e", "late needle")

        def give_up(done: int, total: int) -> None:
            raise InterruptedError(f"{done} of {total}")

        with raises(InterruptedError):
            self.store.search("needle", progress=give_up)

        assert self.found("needle") == [("e", 0), ("d", 0), ("c", 40)]
        assert self.store.verify().problems == ()
