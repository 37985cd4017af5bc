"""Conversations in listings, their titles, and the windows for a model."""

from __future__ import annotations

from datetime import timedelta

from holdfast.conversations import Conversation
from holdfast.errors import Unstorable
from holdfast.messages import AnyMessage, Message, ToolCall
from holdfast.testing._cases import LONG, Cases, untyped
from holdfast.testing._raises import raises
from inner.messages import LONGEST_TITLE

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
PIRATES = "\U0001f3f4\u200d\u2620\ufe0f"
WALES = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"
KENYA = "\U0001f1f0\U0001f1ea"
THUMB = "\U0001f44d\U0001f3fd"
DOTTED, HANGUL = "e\u0301\u0323", "\u1112\u1161\u11ab"


class SummaryTests(Cases):
    """Listings show conversations without their messages."""

    def test_a_summary_has_everything_but_the_messages(self) -> None:
        self.store.conversations.create(
            "c",
            owner="ann",
            agent="a",
            title="t",
            tags=["x", "y"],
            context={"persona": "p"},
            messages=[Message.user(LONG), Message.assistant(LONG), Message.user("?")],
        )
        begun = self.clock.now
        self.clock.advance(timedelta(hours=1))
        self.store.conversations.add("c", Message.assistant("!"))

        [summary] = self.store.conversations.list()

        assert (summary.id, summary.owner, summary.agent) == ("c", "ann", "a")
        assert (summary.title, summary.tags) == ("t", ("x", "y"))
        assert (summary.archived, summary.context) == (False, {"persona": "p"})
        assert (summary.messages, summary.exchanges) == (4, 2)
        assert summary.user_messages == 2
        assert (summary.created_at, summary.updated_at) == (begun, self.clock.now)

    def test_a_stored_value_of_another_type_hides_no_conversation(self) -> None:
        """Earlier versions stored ``tags=None``, and a thread can be saved freely."""
        talks = self.store.conversations
        talks.create("whole", tags=["x"])
        begun = self.clock.now
        for number, wrong in enumerate(untyped(None, 5, "text", [1], {"a": 1})):
            talks.create(f"{number}")
            names = ("title", "tags", "archived", "context", "created_at", "run")
            names += ("metadata", "content_ids", "contents")
            state = dict.fromkeys(names, wrong) | {"messages": []}
            counts = ("messages", "exchanges", "awaiting", "open", "unanswered")
            talks.thread(f"{number}").save(
                state | {"counts": dict.fromkeys(counts, wrong)}
            )

        found = talks.list()
        assert [one.id for one in found] == ["4", "3", "2", "1", "0", "whole"]
        assert [one.tags for one in found] == [(), (), (), (), (), ("x",)]
        assert (found[4].title, found[4].context, found[4].archived) == (
            None,
            {},
            False,
        )
        assert (found[3].title, found[2].title) == (None, "text")
        assert found[4].created_at == begun
        assert [one.id for one in talks.list(tag="x", archived=False)] == ["whole"]
        assert talks.load("0").tags == []
        for one in found[:-1]:
            assert talks.recorder(one.id).iterations == 0
        assert talks.save(talks.load("0")).id == "0"

    def test_the_last_used_comes_first(self) -> None:
        talks = self.store.conversations
        for id_ in "abcd":
            talks.create(id_)
        talks.add("b", Message.user("x"))
        talks.update("a", title="t")
        talks.thread("d").record("key", 1)

        assert [talk.id for talk in talks.list()] == ["d", "a", "b", "c"]
        assert list(talks.summaries()) == list(talks.list())

    def test_they_are_filtered_by_owner_agent_archive_and_tag(self) -> None:
        talks = self.store.conversations
        for n in range(16):
            talks.create(
                f"{n}",
                owner=("ann", "bob")[n & 1],
                agent=("a", "b")[n >> 1 & 1],
                tags=[("x", "y")[n >> 2 & 1], "both"],
                archived=bool(n >> 3 & 1),
            )
        talks.create("plain")

        def found(**filters: object) -> list[str]:
            wanted: dict[str, object] = {"limit": None, **filters}
            return [s.id for s in untyped(talks.list)[0](**wanted)]

        assert len(found()) == 17
        assert len(found(owner="ann")) == len(found(agent="b")) == 8
        assert len(found(tag="x")) == len(found(archived=True)) == 8
        assert (len(found(tag="both")), len(found(archived=False))) == (16, 9)
        assert found(owner="ann", agent="a", tag="x", archived=False) == ["0"]
        assert found(owner="bob", agent="b", tag="y", archived=True) == ["15"]
        assert found(owner="nobody") == found(tag="none") == []

    def test_the_users_messages_are_counted_also_without_a_reply(self) -> None:
        talks = self.store.conversations
        hi, hello = Message.user("Hi."), Message.assistant("Hello.")
        talks.create("c", messages=[hi, hi, hello, Message.system("Be brief.")])
        assert talks.list()[0].user_messages == 2
        talks.add("c", hi)
        talks.add("c", hi)
        run = talks.recorder("c")
        run.add(hi)
        run.llm_response({"role": "assistant", "content": "Hello."})

        assert (talks.list()[0].user_messages, talks.list()[0].exchanges) == (5, 2)

    def test_they_are_filtered_by_items_of_their_context_and_metadata(self) -> None:
        talks = self.store.conversations
        talks.create("a", metadata={"project_ids": ["p", "q"], "n": 1, "x": LONG})
        talks.create("b", metadata={"project_ids": "p"}, context={"task": ["p"]})
        talks.create("c", context={"task": "p"})
        talks.thread("odd").save({"metadata": 5, "messages": []})

        def found(**filters: dict[str, object] | None) -> str:
            return "".join(s.id for s in untyped(talks.list)[0](**filters))

        assert found(metadata={"project_ids": "p"}) == "ba"
        assert found(metadata={"project_ids": ["p", "q"]}) == "a"
        assert found(metadata={"project_ids": "p", "n": 1}) == "a"
        assert (
            found(metadata={"project_ids": "pq"}) == found(metadata={"m": None}) == ""
        )
        assert found(context={"task": "p"}) == "cb"
        assert found(context={"task": "p"}, metadata={"project_ids": "p"}) == "b"
        assert found(metadata={}) == found(metadata=None) == "oddcba"
        for wrong in untyped("project_ids", 5, ["p"]):
            with raises(Unstorable):
                talks.list(metadata=wrong)

    def test_pages_go_on_where_the_one_before_ended(self) -> None:
        talks = self.store.conversations
        for n in range(30):
            talks.create(f"{n:02}", tags=["third"] if n % 3 == 0 else [])

        for tag, expected in ((None, 30), ("third", 10)):
            found: list[str] = []
            after: int | None = None
            while True:
                page = talks.list(tag=tag, limit=4, after=after)
                assert len(page) <= 4
                found += [talk.id for talk in page]
                after = page.cursor
                if after is None:
                    break
            assert len(found) == expected
            assert found == sorted(found, reverse=True)
        for wrong in untyped(0, -1, 1.5, "all", True):
            with raises(Unstorable):
                talks.list(limit=wrong)

    def test_a_page_stays_whole_while_others_are_used(self) -> None:
        talks = self.store.conversations
        for n in range(9):
            talks.create(f"{n}")
        first = talks.list(limit=3)
        talks.add("8", Message.user("x"))
        talks.create("new")

        rest = talks.list(after=first.cursor)

        assert [talk.id for talk in rest] == ["5", "4", "3", "2", "1", "0"]

    def test_an_archived_conversation_is_kept_and_can_come_back(self) -> None:
        talks = self.store.conversations
        talks.create("c", messages=[Message.user(LONG)])

        talks.archive("c")
        assert talks.load("c").archived
        assert [talk.id for talk in talks.list(archived=True)] == ["c"]
        assert len(talks.list(archived=False)) == 0
        talks.add("c", Message.user("still here"))
        assert talks.load("c").archived

        talks.archive("c", archived=False)
        assert not talks.load("c").archived
        assert talks.load("c").message_count == 2

    def test_deleting_conversations_says_how_many_there_were(self) -> None:
        talks = self.store.conversations
        for id_ in "abc":
            talks.create(id_, owner="ann", messages=[Message.user(LONG)])
        talks.create("d", owner="bob")

        assert talks.delete("a", "a", "nobody") == 1
        assert talks.delete("b", "d", owner="ann") == 1
        assert talks.delete() == 0
        assert {talk.id for talk in talks.list()} == {"c", "d"}
        assert talks.delete("c", "d") == 2
        assert self.store.stats().segments == 0

    def test_the_counts_are_of_the_head_whatever_happened(self) -> None:
        talks = self.store.conversations
        talks.create("c")
        saved = [talks.add("c", Message.user(f"{n}")) for n in range(5)]
        thread = talks.thread("c")

        thread.rewind(saved[1])
        assert talks.list()[0].messages == self.store.stats().messages == 2
        talks.add("c", Message.assistant("another way"))
        assert (talks.list()[0].messages, talks.list()[0].exchanges) == (3, 1)
        thread.fork("conversation:d", at=saved[3])
        talks.add("d", Message.user("on the fork"))
        counts = {talk.id: talk.messages for talk in talks.list()}
        assert counts == {"c": 3, "d": 5}
        assert talks.load("d").message_count == 5
        assert self.store.stats().messages == 8


class TitleTests(Cases):
    """A title is made of the first user message, cut between characters."""

    def title(self, *messages: AnyMessage) -> str | None:
        """What a conversation of these messages would be called."""
        talk = self.store.conversations.create(messages=messages)
        title = self.store.conversations.auto_title(talk.id)
        assert self.store.conversations.load(talk.id).title == title
        assert self.store.conversations.list(limit=1)[0].title == title
        assert Conversation(messages=list(messages)).auto_title() == title
        return title

    def test_a_title_is_the_first_user_message_in_one_line(self) -> None:
        assert self.title(Message.system("S"), Message.user(" a\n\tb  c ")) == "a b c"
        assert self.title({"role": "user", "content": "a dict"}) == "a dict"
        parts = [{"type": "image"}, {"type": "text", "text": "look"}]
        assert self.title({"role": "user", "content": parts}) == "look"
        assert self.title(Message.user(" "), Message.user("second")) == "second"

    def test_without_a_user_message_there_is_none(self) -> None:
        assert self.title() is None
        assert self.title(Message.system("S"), Message.assistant("A")) is None
        assert self.title(Message.user("")) is None

    def test_one_that_is_there_stays(self) -> None:
        talks = self.store.conversations
        talks.create("c", title="mine", messages=[Message.user("other")])
        before = talks.thread("c").get()

        assert talks.auto_title("c") == "mine"
        assert talks.thread("c").get() == before

    def test_fifty_characters_are_kept_and_more_are_cut(self) -> None:
        for letter in ("x", "\u6f22", "\u05d0", "\U0001f600", "\u00e9"):
            assert self.title(Message.user(letter * 50)) == letter * 50
            assert self.title(Message.user(letter * 51)) == letter * 49 + "\u2026"

    def test_what_people_see_as_one_character_stays_whole(self) -> None:
        for one in (FAMILY, PIRATES, WALES, KENYA, THUMB, DOTTED, HANGUL):
            assert self.title(Message.user(one)) == one
            for before in range(60):
                said = Message.user("x" * before + one * 30)
                title = Conversation(messages=[said]).auto_title()
                assert title is not None
                assert len(title) <= LONGEST_TITLE
                kept = title.removesuffix("\u2026").lstrip("x")
                assert kept == one * (len(kept) // len(one))

    def test_a_title_with_only_one_endless_character_is_still_one(self) -> None:
        endless = "a" + "\u0301" * 300

        title = self.title(Message.user(endless))

        assert title is not None
        assert len(title) <= LONGEST_TITLE

    def test_right_to_left_text_keeps_its_order(self) -> None:
        text = "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd " * 10

        title = self.title(Message.user(text))

        assert title is not None
        assert text.startswith(title.removesuffix("\u2026"))

    def test_text_that_is_no_text_is_no_harm(self) -> None:
        broken = "\ud83d" * 60

        title = self.title(Message.user(broken))

        assert title == broken[:49] + "\u2026"


class WindowTests(Cases):
    """The newest messages that fit, and always the system message."""

    def test_the_newest_that_fit_are_taken(self) -> None:
        system = Message.system("rules")
        messages = [Message.user(f"{n}", tokens=10) for n in range(20)]
        self.store.conversations.create("c", messages=[system, *messages], budget=40)

        window = self.store.conversations.context_window("c", count=lambda _: 10)

        assert window == [system, *messages[-3:]]
        all_ = self.store.conversations.context_window("c", 10_000)
        assert all_ == [system, *messages]

    def test_a_counter_is_given_the_messages_as_they_came(self) -> None:
        messages: list[AnyMessage] = [
            Message.user("a"),
            {"role": "user", "content": "b"},
        ]
        self.store.conversations.create("c", messages=messages)
        seen: list[AnyMessage] = []

        def count(message: AnyMessage) -> int:
            seen.append(message)
            return 1

        self.store.conversations.context_window("c", 9, count=count)

        assert all(message in messages for message in seen)
        assert {type(message) for message in seen} == {Message, dict}

    def test_a_call_and_its_result_are_not_parted(self) -> None:
        call = ToolCall(id="1", name="look")
        messages = [
            Message.user("old"),
            Message.assistant(tool_calls=[call]),
            Message.tool_result(call, "seen"),
            Message.assistant("done"),
        ]
        self.store.conversations.create("c", messages=messages)

        def window(budget: int) -> list[AnyMessage]:
            talks = self.store.conversations
            return talks.context_window("c", budget, count=lambda _: 1)

        assert window(4) == messages
        assert window(3) == messages[1:]
        assert window(2) == window(1) == messages[3:]

    def test_a_budget_is_needed(self) -> None:
        self.store.conversations.create("c")

        for wrong in untyped(None, 0, -1, 1.5, "all"):
            with raises(Unstorable):
                self.store.conversations.context_window("c", wrong)
        assert self.store.conversations.context_window("c", 1) == []
