"""Search: the matches and their order, and an index that follows every change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast._engine.search.query import Match
from holdfast._values.records import Page
from holdfast.retention import Retention
from holdfast.testing.conformance.cases import Cases

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
        """Conversation and position of each match of a query."""
        return places(self.store.search(query, **options))


class SearchTests(SearchCases):
    """The messages that a query matches, and the texts that show them."""

    def test_a_text_is_found_in_any_case(self) -> None:
        self.talk("c", "Nothing here", "The Quick Brown Fox", "the quick red fox")

        assert self.found("quick brown") == [("c", 1)]
        assert self.found("QUICK") == [("c", 2), ("c", 1)]
        assert self.found('"uick r"') == [("c", 2)]
        assert self.found('"quick  brown"') == []

    def test_several_words_are_found_in_one_message_in_any_order(self) -> None:
        self.talk("a", "A train to Lyon", "the ticket", "Lyon is nice; the TRAINS too")
        self.talk("b", PADDING * 7, "a train", PADDING * 7, "of Lyon", PADDING * 7)
        self.talk("c", PADDING * 7, f"lyon {PADDING} train", PADDING * 7)

        for query in ("lyon train", "TRAIN  lyon ", "train\nlyon train"):
            assert self.found(query) == [("c", 1), ("a", 2), ("a", 0)]
        assert self.found("lyon train a nice") == [("a", 2)]
        assert self.found("lyon train ticket") == []

    def test_words_too_short_for_an_index_count_too(self) -> None:
        self.talk("c", "to Lyon", "from Lyon", "go to", "xx", "to xx")

        assert self.found("lyon to") == [("c", 0)]
        assert self.found("to xx") == [("c", 4)]
        assert self.found("lyon to xx") == []

    def test_many_words_are_all_looked_for(self) -> None:
        words = [f"{letter * 3}{n}" for n, letter in enumerate("abcdefghijklmnop")]
        self.talk("c", " ".join(words), *(" ".join(words[:n]) for n in range(1, 16)))

        assert self.found(" ".join(reversed(words))) == [("c", 0)]
        assert self.found(" ".join([*words, "missing"])) == []

    def test_a_quoted_phrase_is_found_as_it_is(self) -> None:
        self.talk("c", "red wine and white", "white wine", 'say "white wine"')

        assert self.found('"white wine"') == [("c", 2), ("c", 1)]
        assert self.found('white "red wine"') == [("c", 0)]
        assert self.found('"red wine" "and white"') == [("c", 0)]
        assert self.found('"wine white"') == []
        # A quote that encloses nothing, or stands in a word, is a character.
        assert self.found('white "') == [("c", 2)]
        assert self.found('wine"') == [("c", 2)]
        assert self.found('""') == []

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

    def test_long_queries_and_long_messages_are_found(self) -> None:
        text = PADDING * 3
        self.talk("c", text, text + "needle" + text, text)

        assert self.found("needle") == [("c", 1)]
        assert self.found(text) == [("c", 2), ("c", 1), ("c", 0)]
        assert self.found("again. NEEDLE") == [("c", 1)]
        assert self.found(text + "NEEDLE" + text) == [("c", 1)]
        assert self.found(text + "needles" + text) == []


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

    def test_pages_of_conversations_show_each_once(self) -> None:
        for n in range(7):
            self.talk(f"{n}", "needle", f"needle {PADDING}", "hay")

        for query in ("needle", "ne", "needle quick"):
            pages = self._pages(query, 3, per="conversation")
            assert [len(page) for page in pages] == [3, 3, 1]
            assert places(m for page in pages for m in page) == [
                (f"{n}", 1) for n in (6, 5, 4, 3, 2, 1, 0)
            ]
        assert self.found("needle", per="conversation", conversation="3") == [("3", 1)]

    def test_pages_of_short_queries_follow_one_another(self) -> None:
        for n in range(5):
            self.talk(f"{n}", "x", "y", "x")

        pages = self._pages("x", 3)

        assert [len(page) for page in pages] == [3, 3, 3, 1]
        assert places(m for page in pages for m in page) == [
            (f"{n}", position) for n in (4, 3, 2, 1, 0) for position in (2, 0)
        ]

    def _pages(self, query: str, limit: int, **options: Any) -> list[Page[Match]]:
        pages = [self.store.search(query, limit=limit, **options)]
        while pages[-1].cursor is not None:
            after = pages[-1].cursor
            page = self.store.search(query, limit=limit, after=after, **options)
            pages.append(page)
        return pages

    def test_what_is_used_between_two_pages_shifts_nothing(self) -> None:
        for name in "abcd":
            self.talk(name, "needle")
        page = self.store.search("needle", limit=2)
        self.talk("new", "needle")
        self.store.conversations.add("d", user("needle"))

        assert self.found("needle", after=page.cursor) == [("b", 0), ("a", 0)]

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

    def test_threads_with_messages_are_found_among_conversations(self) -> None:
        self.talk("a", "needle")
        self.store.thread("b").save({"messages": [user("hay"), user("a needle")]})
        self.store.thread("c").append(messages=["a needle of no shape"])

        found = self.store.search("needle")

        assert places(found) == [("c", 0), ("b", 1), ("a", 0)]
        assert found[1].thread == "b"
        assert places(self.store.conversations.search("needle")) == [("a", 0)]


class SearchUpkeepCases(SearchCases):
    """Conversations that were searched."""

    def begin(self) -> None:
        """A long conversation and a short one that were searched already."""
        self.talk("c", *(f"message {n}: {PADDING}" for n in range(40)), "old needle")
        self.talk("d", "another needle")
        assert self.found("needle") == [("d", 0), ("c", 40)]


class SearchUpkeepTests(SearchUpkeepCases):
    """A search finds the messages as they are stored now."""

    def test_an_added_message_is_found(self) -> None:
        self.begin()
        for _ in range(3):
            self.store.conversations.add("c", user("new needle"))
            assert self.found("new needle")[0][0] == "c"

        assert self.found("needle") == [
            ("c", 43), ("c", 42), ("c", 41), ("c", 40), ("d", 0),
        ]  # fmt: skip

    def test_an_edited_message_is_found_as_it_is(self) -> None:
        self.begin()
        conversation = self.store.conversations.load("c")
        conversation.messages[20] = user("edited")
        conversation.messages[40] = user("no more")
        self.store.conversations.save(conversation)

        assert self.found("needle") == [("d", 0)]
        assert self.found("edited") == [("c", 20)]
        assert self.found('"message 20:"') == []
        assert self.found('"message 21:"') == [("c", 21)]

    def test_messages_that_were_cut_off_in_front_are_not_found(self) -> None:
        self.begin()
        conversation = self.store.conversations.load("c")
        del conversation.messages[:10]
        self.store.conversations.save(conversation)

        assert self.found('"message 9:"') == []
        assert self.found('"message 10:"') == [("c", 0)]
        assert self.found("old needle") == [("c", 30)]

    def test_a_rewound_conversation_is_searched_at_its_head(self) -> None:
        self.begin()
        self.store.conversations.add("c", user("new needle"))
        assert self.found("new needle") == [("c", 41)]
        thread = self.store.conversations.thread("c")

        thread.undo()
        assert self.found("new needle") == []
        assert self.found("needle") == [("c", 40), ("d", 0)]

        thread.redo()
        assert self.found("new needle") == [("c", 41)]

        thread.rewind("@~1", hard=True)
        assert self.found("needle") == [("c", 40), ("d", 0)]

    def test_a_fork_is_found_beside_what_it_came_from(self) -> None:
        self.begin()
        thread = self.store.conversations.thread("c")
        thread.fork("conversation:fork")
        self.store.conversations.add("fork", user("forked needle"))

        assert self.found("old needle") == [("fork", 40), ("c", 40)]
        assert self.found("forked needle") == [("fork", 41)]

    def test_a_deleted_conversation_is_not_found(self) -> None:
        self.begin()
        self.store.conversations.delete("c")
        assert self.found("needle") == [("d", 0)]

        self.store.conversations.delete("d")
        assert self.found("needle") == []

    def test_a_new_conversation_with_an_old_id_is_found(self) -> None:
        self.begin()
        self.store.conversations.delete("c")
        self.talk("c", "other", "fresh needle")

        assert self.found("needle") == [("c", 1), ("d", 0)]
        assert self.found("message") == []

    def test_pruning_changes_nothing(self) -> None:
        self.begin()
        for n in range(5):
            self.store.conversations.add("c", user(f"addition {n}"))
        self.store.prune(Retention(last=1))

        assert self.found("needle") == [("c", 40), ("d", 0)]
        assert self.found("addition") == [("c", n) for n in range(45, 40, -1)]

    def test_compacting_changes_nothing(self) -> None:
        self.must_be_able("compact")
        self.begin()
        for n in range(20):
            self.store.conversations.add("d", user(f"small {n}"))
            assert self.found(f"small {n}")[0] == ("d", n + 1)
        self.store.conversations.delete("c")

        for _ in range(2):
            self.store.compact()
            assert self.found("needle") == [("d", 0)]
            assert self.found("small") == [("d", n) for n in range(20, 0, -1)]
            assert self.store.verify().problems == ()

    def test_a_message_is_found_after_reopening(self) -> None:
        self.begin()
        store = self.reopen()

        assert places(store.search("needle")) == [("d", 0), ("c", 40)]

    def test_a_rival_finds_what_was_just_saved(self) -> None:
        self.begin()
        rival = self.rival()

        self.store.conversations.add("c", user("rival needle"))
        assert places(rival.search("rival needle")) == [("c", 41)]

        rival.conversations.add("d", user("rival needle"))
        assert self.found("rival needle") == [("d", 1), ("c", 41)]

    def test_a_store_opened_for_reading_is_searched(self) -> None:
        self.begin()
        self.store.conversations.add("c", user("not searched for yet"))
        reader = self.reopen(read_only=True)

        assert places(reader.search("needle")) == [("c", 40), ("d", 0)]
        assert places(reader.search("not searched")) == [("c", 41)]

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
