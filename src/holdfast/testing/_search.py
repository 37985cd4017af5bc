# ruff: noqa: PLR2004 - a test states its numbers where it uses them
"""Searching messages: what is found, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast._engine.search.query import Match
from holdfast._values.records import Page
from holdfast.agents import Agent
from holdfast.errors import Unstorable
from holdfast.messages import Attachment, Message, ToolCall
from holdfast.testing._cases import Cases, untyped
from holdfast.testing._raises import raises

# Longer than one stretch of the index, so that a conversation has several.
PADDING = "The quick brown fox jumps over the lazy dog, and over it again. " * 10
PLAIN = [
    "100% of a_b",
    "*",
    '"quoted" text',
    "it's; drop table thread; --",
    "a AND b OR NOT c",
    "NEAR(a b, 2)",
    "text:word ^start +plus -minus",
    "{curly} [square] (round) \\ ?1 :name",
    "tab\tand\nnew line",
]


def places(found: Iterable[Match]) -> list[tuple[str, int]]:
    """Conversation and position of each match, in their order."""
    return [(match.conversation, match.position) for match in found]


def user(text: object) -> dict[str, Any]:
    """A message of a user."""
    return {"role": "user", "content": text}


class SearchCases(Cases):
    """Conversations, and searching them."""

    def talk(self, name: str, *texts: str, **about: Any) -> None:
        """A new conversation of a user's messages."""
        messages = [user(text) for text in texts]
        self.store.conversations.create(name, messages=messages, **about)

    def found(self, query: str, **options: Any) -> list[tuple[str, int]]:
        """Where a text is found."""
        return places(self.store.search(query, **options))


class SearchTests(SearchCases):
    """What is found and how it is shown."""

    def test_a_text_is_found_in_any_case(self) -> None:
        self.talk("c", "Nothing here", "The Quick Brown Fox", "the quick red fox")

        assert self.found("quick brown") == [("c", 1)]
        assert self.found("QUICK") == [("c", 2), ("c", 1)]
        assert self.found("uick r") == [("c", 2)]
        assert self.found("quick  brown") == []

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

    def test_a_message_is_found_once_however_often_it_holds_the_text(self) -> None:
        self.talk("c", "echo echo echo")

        assert self.found("echo") == [("c", 0)]

    def test_what_is_nowhere_is_not_found(self) -> None:
        assert self.found("anything") == []

        self.talk("c", "something")

        assert self.found("anything") == []

    def test_short_texts_are_found_too(self) -> None:
        self.talk("c", "a b", "猫は鳥を見た", "🙂")

        assert self.found("b") == [("c", 0)]
        assert self.found(" b") == [("c", 0)]
        assert self.found("鳥") == [("c", 1)]
        assert self.found("猫は鳥") == [("c", 1)]
        assert self.found("🙂") == [("c", 2)]
        assert self.found(" ") == [("c", 0)]

    def test_every_character_is_taken_as_it_is(self) -> None:
        self.talk("c", *PLAIN)

        for position, text in enumerate(PLAIN):
            assert self.found(text) == [("c", position)]
            assert self.found(text[:-1] + "!") == []
        assert self.found("a_b") == [("c", 0)]
        assert self.found("a?b") == []
        assert self.found('" text') == [("c", 2)]

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

    def test_odd_characters_hide_nothing(self) -> None:
        odd = ["nul \0 inside", "half \ud83d pair", "\ufffe and \uffff", "\u202etxet"]
        self.talk("c", *odd, "replaced \ufffd inside")

        assert self.found("\0 inside") == [("c", 0)]
        assert self.found("inside") == [("c", 4), ("c", 0)]
        assert self.found("half \ud83d") == [("c", 1)]
        assert self.found("\ud83d pair") == [("c", 1)]
        assert self.found("half \ud83e") == []
        assert self.found("\ufffe and \uffff") == [("c", 2)]
        assert self.found("\u202etxet") == [("c", 3)]
        assert self.found("replaced \ufffd") == [("c", 4)]

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

    def test_a_snippet_shows_what_is_around(self) -> None:
        around = "before " * 50, "after " * 50
        self.talk("c", f"{around[0]}needle {around[1]}", "  a\n\n\tsmall   needle\n")

        short, long = self.store.search("NEEDLE")

        assert short.snippet == "a small needle"
        assert "before needle after" in long.snippet
        assert long.snippet[0] == long.snippet[-1] == "…"
        assert 80 <= len(long.snippet) <= 120

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

    def test_long_queries_and_long_messages_are_found(self) -> None:
        text = PADDING * 20
        self.talk("c", text, text + "needle" + text, text)

        assert self.found("needle") == [("c", 1)]
        assert self.found(text) == [("c", 2), ("c", 1), ("c", 0)]
        assert self.found("again. NEEDLE") == [("c", 1)]
        assert self.found(text + "NEEDLE" + text) == [("c", 1)]
        assert self.found(text + "needles" + text) == []

    def test_nothing_is_found_across_messages(self) -> None:
        self.talk("c", "one", "two")

        assert self.found("one\ntwo") == []
        assert self.found("onetwo") == []

    def test_a_query_is_text(self) -> None:
        for wrong in untyped("", None, 7, b"bytes", ["list"]):
            with raises(Unstorable):
                self.store.search(wrong)

    def test_limits_and_names_are_checked(self) -> None:
        for wrong in untyped(0, -1, 1.5, "3", True):
            with raises(Unstorable):
                self.store.search("text", limit=wrong)
        for name in ("agent", "owner", "conversation"):
            with raises(Unstorable):
                self.store.search("text", **untyped({name: ""})[0])


class SearchOrderTests(SearchCases):
    """Newest first, in pages, and only in the conversations asked for."""

    def test_the_conversation_used_last_comes_first(self) -> None:
        for name in "abc":
            self.talk(name, "needle", "nothing", "needle")

        self.store.conversations.add("a", user("nothing either"))

        assert self.found("needle") == [
            ("a", 2), ("a", 0), ("c", 2), ("c", 0), ("b", 2), ("b", 0),
        ]  # fmt: skip

    def test_pages_follow_one_another(self) -> None:
        for n in range(7):
            self.talk(f"{n}", *(f"{n} {m} needle {PADDING}" for m in range(9)))
        everything = self.store.search("needle", limit=None)

        for limit in (1, 4, 9, 60, 63, 64):
            pages = self._pages("needle", limit)
            assert [match for page in pages for match in page] == list(everything)
            assert {len(page) for page in pages[:-1]} <= {limit}
        assert len(everything) == 63
        assert everything.cursor is None
        assert len(self.store.search("needle")) == 20

    def test_pages_of_short_queries_follow_one_another(self) -> None:
        for n in range(5):
            self.talk(f"{n}", "x", "y", "x")

        pages = self._pages("x", 3)

        assert [len(page) for page in pages] == [3, 3, 3, 1]
        assert places(m for page in pages for m in page) == [
            (f"{n}", position) for n in (4, 3, 2, 1, 0) for position in (2, 0)
        ]

    def _pages(self, query: str, limit: int) -> list[Page[Match]]:
        pages = [self.store.search(query, limit=limit)]
        while pages[-1].cursor is not None:
            after = pages[-1].cursor
            pages.append(self.store.search(query, limit=limit, after=after))
        return pages

    def test_what_is_used_between_two_pages_shifts_nothing(self) -> None:
        for name in "abcd":
            self.talk(name, "needle")
        page = self.store.search("needle", limit=2)
        self.talk("new", "needle")
        self.store.conversations.add("d", user("needle"))

        assert self.found("needle", after=page.cursor) == [("b", 0), ("a", 0)]

    def test_one_conversation_is_paged_through_while_it_grows(self) -> None:
        self.talk("c", *(f"needle {n}" for n in range(5)))
        self.talk("other", "needle")
        page = self.store.search("needle", conversation="c", limit=2)
        self.store.conversations.add("c", user("needle 5"))

        rest = self.store.search("needle", conversation="c", after=page.cursor)

        assert places(page) == [("c", 4), ("c", 3)]
        assert places(rest) == [("c", 2), ("c", 1), ("c", 0)]

    def test_only_the_wanted_conversations_are_searched(self) -> None:
        self.talk("a", "needle", agent="one", owner="me")
        self.talk("b", "needle", agent="two", owner="me")
        self.talk("c", "needle", agent="one", owner="you")
        self.talk("d", "needle")
        wanted: list[tuple[dict[str, str], list[str]]] = [
            ({"agent": "one"}, ["c", "a"]),
            ({"owner": "me"}, ["b", "a"]),
            ({"agent": "one", "owner": "me"}, ["a"]),
            ({"conversation": "d"}, ["d"]),
            ({"conversation": "a", "owner": "me"}, ["a"]),
            ({"conversation": "a", "owner": "you"}, []),
            ({"conversation": "a", "agent": "two"}, []),
            ({"conversation": "missing"}, []),
            ({"agent": "nobody"}, []),
            ({}, ["d", "c", "b", "a"]),
        ]

        for query in ("needle", "n"):
            for options, names in wanted:
                found = self.found(query, **options)
                assert found == [(name, 0) for name in names]

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
        self.store.thread("other", kind="notes").save({"messages": [user("needle")]})

        assert self.found("needle") == []

    def test_threads_with_messages_are_found_among_conversations(self) -> None:
        self.talk("a", "needle")
        self.store.thread("b").save({"messages": [user("hay"), user("a needle")]})
        self.store.thread("c").append(messages=["a needle of no shape"])

        found = self.store.search("needle")

        assert places(found) == [("c", 0), ("b", 1), ("a", 0)]
        assert found[1].thread == "b"
        assert places(self.store.conversations.search("needle")) == [("a", 0)]

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
