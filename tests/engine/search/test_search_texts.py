"""Texts of any kind, changed in any way, are found as by reading them all."""

from __future__ import annotations

import random
from itertools import count

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import holdfast
from holdfast.testing._search import places, user
from inner.engine import snippet
from support.effort import seed_of

# Letters whose cases differ in length or number, scripts without cases, marks, what
# FTS5 and SQL could take for syntax, and what cannot be encoded.
LETTERS = [
    *"aAbBcCiIkKsSéÉ",
    *("\u00df", "\u1e9e", "\u0130", "\u0131", "\u017f", "\u212a", "\u0149", "\ufb03"),
    *("\u03c3", "\u03c2", "\u03a3", "e\u0301", "猫", "鳥", "見", "🙂", "👩\u200d👧"),
]
SIGNS = [
    *" \n\t'\"%_*()^:-+{}[]\\?~",
    *("AND", "OR", "NEAR", "\0", "\ud83d", "\udfff", "\ufffd", "\ufffe"),
]
texts = st.lists(st.sampled_from(LETTERS + SIGNS), max_size=25).map("".join)
foldings = st.sampled_from([str.upper, str.lower, str.swapcase, str.casefold, str])


@given(texts, texts, texts, foldings)
def test_a_snippet_shows_what_was_found(before, needle, after, fold):
    text = f"{before}{needle}{after}"
    query = fold(needle).casefold()
    if not query or query not in text.casefold():
        return

    shown = snippet(text, query)

    assert len(shown) <= 120
    narrow = " ".join(query.split())
    assert narrow in " ".join(shown.casefold().split())


def is_match(query, text):
    """Whether a text has every word; the queries here have no quoted phrases."""
    words = query.split() or [query]
    return all(word.casefold() in text.casefold() for word in words)


class Searching(RuleBasedStateMachine):
    """Conversations of any texts, changed in any way, against reading them all."""

    @initialize()
    def open(self):
        self.store = holdfast.open(":memory:")
        self.names = []
        self.numbers = count()
        self.seen = ["nowhere"]

    def teardown(self):
        self.store.close()

    @rule(several=st.lists(texts, max_size=6))
    def create(self, several):
        name = f"{next(self.numbers)}"
        self.store.conversations.create(name, messages=[user(t) for t in several])
        self.names.append(name)
        self.seen += several

    @precondition(lambda self: self.names)
    @rule(data=st.data(), several=st.lists(texts, min_size=1, max_size=4))
    def add(self, data, several):
        name = data.draw(st.sampled_from(self.names))
        self.store.conversations.add(name, *(user(t) for t in several))
        self.seen += several

    @precondition(lambda self: self.names)
    @rule(data=st.data(), text=texts)
    def edit(self, data, text):
        name = data.draw(st.sampled_from(self.names))
        conversation = self.store.conversations.load(name)
        place = data.draw(st.integers(0, len(conversation.messages)))
        conversation.messages[place : place + 1] = [user(text)] if text else []
        self.store.conversations.save(conversation)
        self.seen.append(text)

    @precondition(lambda self: self.names)
    @rule(data=st.data())
    def rewind(self, data):
        thread = self.store.conversations.thread(data.draw(st.sampled_from(self.names)))
        if thread.step > 1:
            thread.rewind("@~1")

    @precondition(lambda self: self.names)
    @rule(data=st.data())
    def fork(self, data):
        source = data.draw(st.sampled_from(self.names))
        name = f"{next(self.numbers)}"
        self.store.conversations.thread(source).fork(f"conversation:{name}")
        self.names.append(name)

    @precondition(lambda self: self.names)
    @rule(data=st.data())
    def delete(self, data):
        name = data.draw(st.sampled_from(self.names))
        self.store.conversations.delete(name)
        self.names.remove(name)

    @rule()
    def compact(self):
        self.store.compact()

    @rule(data=st.data(), fold=foldings)
    def search(self, data, fold):
        text = data.draw(st.sampled_from(self.seen))
        start = data.draw(st.integers(0, max(0, len(text) - 1)))
        size = data.draw(st.sampled_from([1, 2, 3, 4, 7, 100]))
        self.check(fold(text[start : start + size]) or "nowhere")

    @rule(query=texts.filter(bool))
    def search_any(self, query):
        self.check(query)

    @rule(data=st.data(), fold=foldings)
    def search_words(self, data, fold):
        words = data.draw(st.sampled_from(self.seen)).split()
        self.check(fold(" ".join(data.draw(st.permutations(words)))) or "nowhere")

    def check(self, query):
        query = query.replace('"', "'")
        found = self.store.search(query, limit=None)
        assert places(found) == list(self.expected(query))
        for match in found:
            conversation = self.store.conversations.load(match.conversation)
            assert match.message == conversation.messages[match.position]
        assert self.store.verify().problems == ()

    def expected(self, query):
        for thread in self.store.threads(kind="conversation", limit=None):
            messages = thread.head and self.store.load(thread.head)["messages"]
            for position in reversed(range(len(messages))):
                if is_match(query, messages[position]["content"]):
                    yield thread.id.removeprefix("conversation:"), position


TestSearching = Searching.TestCase


def test_long_random_conversations_are_searched_like_brute_force(path):
    """Long enough for stretches, batches and merged segments of FTS5."""
    chance = random.Random(seed_of("long conversations"))
    words = [
        "".join(chance.choices("abcdeé", k=chance.randint(2, 6))) for _ in range(400)
    ]
    with holdfast.open(path, durability="normal") as store:
        for number in range(30):
            messages = [
                user(" ".join(chance.choices(words, k=chance.randint(1, 120))))
                for _ in range(chance.randint(1, 60))
            ]
            store.conversations.create(f"{number}", messages=messages)
            if number % 7 == 0:
                store.search("anything")
        for word in [*words[:40], "aé", "zzz"]:
            wanted = [
                (thread.id.removeprefix("conversation:"), position)
                for thread in store.threads(kind="conversation", limit=None)
                for position, message in reversed(
                    list(enumerate(store.load(thread.head)["messages"]))
                )
                if word in message["content"]
            ]
            assert places(store.search(word.upper(), limit=None)) == wanted
