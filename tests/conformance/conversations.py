"""Conversations: creating, adding, saving, loading."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from holdfast.agents import Agent
from holdfast.conversations import Conversation
from holdfast.errors import Conflict, FormatMismatch, NotFound, Unstorable
from holdfast.messages import Message, ToolCall
from holdfast.testing import raises
from holdfast.testing.conformance.cases import LONG, Cases, untyped
from holdfast.testing.trials.hostile import HOSTILE

HOUR = timedelta(hours=1)


class ConversationTests(Cases):
    """A conversation is a record that grows."""

    def test_a_conversation_is_loaded_as_it_was_created(self) -> None:
        created = self.store.conversations.create(
            "c",
            owner="ann",
            agent="scout",
            title="About reefs",
            messages=[Message.system("Be brief."), Message.user("Hello " + LONG)],
            summary="We said hello.",
            context={"persona": "sailor", "task": 7},
            tags=["sea", "reef"],
            archived=True,
            budget=4000,
            metadata={"lang": "en", "nested": {"a": (1, b"\0")}},
        )

        loaded = self.store.conversations.load("c")

        assert loaded == created
        assert self.store.conversations.find("c") == created
        assert (loaded.message_count, loaded.exchange_count) == (2, 0)
        assert (loaded.created_at, loaded.updated_at) == (self.clock.now,) * 2

    def test_an_empty_one_has_nothing_but_an_id(self) -> None:
        created = self.store.conversations.create()

        loaded = self.store.conversations.load(created.id)

        assert loaded == created
        assert (loaded.messages, loaded.title, loaded.is_empty) == ([], None, True)
        self.store.conversations.add(created.id, Message.system("Be brief."))
        assert self.store.conversations.load(created.id).is_empty
        self.store.conversations.add(created.id, Message.user("Hi."))
        assert not self.store.conversations.load(created.id).is_empty

    def test_one_that_was_made_elsewhere_keeps_its_time(self) -> None:
        self.store.conversations.save(Conversation(id="c", created_at=5))

        assert self.store.conversations.load("c").created_at == 5

    def test_a_conversation_is_there_after_reopening(self) -> None:
        self.store.conversations.create("c", messages=[Message.user(LONG)])
        self.store.conversations.add("c", Message.assistant(LONG))
        before = self.store.conversations.load("c")

        assert self.reopen().conversations.load("c") == before

    def test_an_id_in_use_is_refused(self) -> None:
        self.store.conversations.create("c", title="first")

        with raises(Conflict, "conversation_exists"):
            self.store.conversations.create("c", title="second")

        assert self.store.conversations.load("c").title == "first"

    def test_a_deleted_conversation_can_be_created_again(self) -> None:
        talks = self.store.conversations
        talks.create("c", owner="ann", messages=[Message.user(LONG)])
        talks.delete("c")

        talks.create("c", owner="bob")

        assert talks.load("c").owner == "bob"
        assert talks.load("c").messages == []
        assert talks.thread("c").step == 1

    def test_what_is_not_there_is_not_found(self) -> None:
        talks = self.store.conversations
        assert talks.find("nobody") is None
        for call in (
            lambda: talks.load("nobody"),
            lambda: talks.add("nobody", Message.user("x")),
            lambda: talks.update("nobody", title="x"),
            lambda: talks.archive("nobody"),
            lambda: talks.auto_title("nobody"),
            lambda: talks.context_window("nobody", 100),
            lambda: talks.latest_safe("nobody"),
        ):
            with raises(NotFound) as missing:
                call()
            assert "nobody" in str(missing.error)
        assert self.store.stats().threads == 0

    def test_what_was_deleted_is_not_found_either(self) -> None:
        talks = self.store.conversations
        talks.create("c", messages=[Message.user("x")])
        talks.delete("c")

        for call in (
            lambda: talks.load("c"),
            lambda: talks.add("c", Message.user("x")),
            lambda: talks.update("c", title="x"),
            lambda: talks.auto_title("c"),
        ):
            with raises(NotFound):
                call()
        assert self.store.stats().threads == 0

    def test_any_id_of_a_conversation_is_only_an_id(self) -> None:
        for n, id_ in enumerate(HOSTILE):
            self.store.conversations.create(id_, owner=id_, title=f"{n}")
            self.store.conversations.add(id_, Message.user(f"{n}"))

        for n, id_ in enumerate(HOSTILE):
            loaded = self.store.conversations.load(id_, owner=id_)
            assert (loaded.id, loaded.owner, loaded.title) == (id_, id_, f"{n}")
        assert {talk.id for talk in self.store.conversations.list()} == {*HOSTILE}
        assert self.store.conversations.delete(*HOSTILE) == len(HOSTILE)

    def test_a_conversation_that_cannot_be_named_so_is_refused(self) -> None:
        talks = self.store.conversations
        for wrong in untyped("a\0b", "\ud800", "x" * 500, 5, b"a"):
            with raises(Unstorable):
                talks.create(wrong)
            with raises(Unstorable):
                talks.get_or_create("ann", wrong)
            with raises(Unstorable):
                talks.load(wrong)
            with raises(Unstorable):
                talks.add(wrong, Message.user("x"))
            with raises(Unstorable):
                talks.delete(wrong)
        for wrong in untyped("", "a\0b", "\ud800", "x" * 513, 5):
            with raises(Unstorable):
                talks.create("c", owner=wrong)
            with raises(Unstorable):
                talks.create("c", agent=wrong)
        assert self.store.stats().threads == 0

    def test_a_thread_that_holds_no_conversation_is_not_taken_for_one(self) -> None:
        self.store.thread("conversation:c").save(["a list"])

        with raises(FormatMismatch):
            self.store.conversations.load("c")


class AddMessageTests(Cases):
    """Messages of several writers are added one after the other."""

    def test_messages_are_added_at_the_end_and_counted(self) -> None:
        talks = self.store.conversations
        talks.create("c", messages=[Message.system("Be brief.")])
        question, answer = Message.user("Why?"), Message.assistant("Because.")
        call = ToolCall(id="call-1", name="look", arguments={"at": "sea"})

        talks.add("c", question)
        talks.add("c", answer, Message.user("And?"))
        saved = talks.add("c", Message.assistant(tool_calls=[call]))

        loaded = talks.load("c")
        assert loaded.messages[1:3] == [question, answer]
        assert loaded.checkpoint == saved.id
        [summary] = talks.list()
        assert (summary.messages, summary.exchanges) == (5, 2)
        assert summary.open_calls == ("call-1",)
        assert loaded.exchange_count == 2
        talks.add("c", Message.tool_result(call, "waves"))
        assert talks.list()[0].open_calls == ()

    def test_a_hundred_concurrent_additions_are_a_hundred_messages(self) -> None:
        talks = self.store.conversations
        talks.create("c")

        def add(n: int) -> None:
            talks.add("c", Message.user(f"{n}") if n % 2 else {"type": "x", "n": n})

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(add, range(100)))

        loaded = talks.load("c")
        assert loaded.message_count == 100
        found = {
            message.content if isinstance(message, Message) else message["n"]
            for message in loaded.messages
        }
        assert found == {f"{n}" if n % 2 else n for n in range(100)}
        assert (talks.list()[0].messages, self.store.stats().messages) == (100, 100)

    def test_additions_of_two_stores_are_all_there(self) -> None:
        one, other = self.store.conversations, self.rival().conversations
        one.create("c")
        for n in range(10):
            one.add("c", Message.user(f"one {n} {LONG}"))
            other.add("c", Message.user(f"other {n} {LONG}"))

        assert one.load("c").message_count == 20
        assert other.list()[0].messages == 20

    def test_nothing_is_added_to_what_another_store_has_deleted(self) -> None:
        one, other = self.store.conversations, self.rival().conversations
        one.create("c", messages=[Message.user(LONG)])
        one.add("c", Message.user("x"))
        other.delete("c")

        with raises(NotFound) as missing:
            one.add("c", Message.user("y"))

        assert "conversation 'c'" in str(missing.error)
        assert one.find("c") is None

    def test_a_conversation_can_be_loaded_as_it_was(self) -> None:
        talks = self.store.conversations
        talks.create("c", title="t")
        saved = [talks.add("c", Message.user(f"{n} {LONG}")) for n in range(5)]
        talks.update("c", title="new")

        old = talks.load("c", saved[2])

        assert old.message_count == 3
        assert (old.title, old.checkpoint) == ("t", saved[2].id)
        assert talks.load("c", saved[2].id) == old == talks.load("c", "@~3")
        with raises(NotFound):
            talks.load("c", "nothing")

    def test_adding_with_an_owner_adds_to_that_owners_only(self) -> None:
        talks = self.store.conversations
        talks.create("c", owner="ann")

        talks.add("c", Message.user("x"), owner="ann")
        with raises(NotFound):
            talks.add("c", Message.user("y"), owner="bob")

        assert talks.load("c").message_count == 1

    def test_what_is_no_message_is_refused(self) -> None:
        talks = self.store.conversations
        talks.create("c")

        for wrong in untyped("text", None, 5, ["list"], ("user", "hi")):
            with raises(Unstorable):
                talks.add("c", wrong)
        with raises(Unstorable):
            talks.add("c", Message.user("fine"), {"role": "user", "content": print})
        assert talks.load("c").messages == []
        assert talks.thread("c").step == 1


class SaveConversationTests(Cases):
    """Saving a whole conversation, or some of its fields."""

    def test_a_loaded_conversation_is_changed_and_saved(self) -> None:
        talks = self.store.conversations
        talks.create("c", owner="ann", agent="a", messages=[Message.user(LONG)])
        loaded = talks.load("c")
        loaded.add(Message.assistant("Edited."))
        loaded.messages[0] = Message.user("Shorter.")
        loaded.title = "New"

        self.clock.advance(HOUR)
        saved = talks.save(loaded)

        assert saved is loaded
        assert talks.load("c") == loaded
        assert loaded.updated_at == self.clock.now == loaded.created_at + 3600 * 10**6
        [summary] = talks.list()
        assert (summary.messages, summary.exchanges) == (2, 1)
        talks.save(loaded)

    def test_of_two_that_loaded_a_conversation_the_second_is_refused(self) -> None:
        talks = self.store.conversations
        talks.create("c")
        one, other = talks.load("c"), talks.load("c")
        talks.add("c", Message.user("in between"))

        with raises(Conflict, "head_moved"):
            talks.save(one)
        with raises(Conflict, "head_moved"):
            talks.save(other)

        assert talks.load("c").message_count == 1

    def test_a_conversation_loaded_before_its_deletion_does_not_revive_it(self) -> None:
        talks = self.store.conversations
        stale = talks.create("c")
        talks.delete("c")

        with raises(Conflict, "thread_deleted"):
            talks.save(stale)
        talks.create("c", title="new")
        with raises(Conflict, "head_moved"):
            talks.save(stale)

        assert talks.load("c").title == "new"

    def test_a_conversation_made_by_hand_replaces_what_is_there(self) -> None:
        talks = self.store.conversations
        first = talks.create("c", title="old", messages=[Message.user(LONG)])
        self.clock.advance(HOUR)

        talks.save(Conversation(id="c", summary="new"))

        loaded = talks.load("c")
        assert (loaded.title, loaded.summary, loaded.messages) == (None, "new", [])
        assert loaded.created_at == first.created_at
        assert talks.load("c", "@~1").title == "old"

    def test_a_conversation_made_by_hand_does_not_take_what_is_anothers(self) -> None:
        talks = self.store.conversations
        talks.create("c", owner="ann", agent="a")

        for owner, agent in ((None, "a"), ("bob", "a"), ("ann", "b"), ("ann", None)):
            with raises(Conflict, "foreign"):
                talks.save(Conversation(id="c", owner=owner, agent=agent, title="x"))

        assert talks.load("c").title is None
        assert talks.save(Conversation(id="c", owner="ann", agent="a", title="mine"))

    def test_of_two_that_give_a_conversation_away_the_second_is_refused(self) -> None:
        talks = self.store.conversations
        self.store.agents.save(Agent(id="b"))
        talks.create("c", owner="ann", agent="a", messages=[Message.user(LONG)])
        loaded, stale = talks.load("c"), talks.load("c")
        loaded.agent, stale.title = "b", "Mine"

        talks.save(loaded)

        assert self.store.agents.load("b").active_conversations == ("c",)
        with raises(Conflict, "head_moved"):
            talks.save(stale)
        loaded.owner = "bob"
        with raises(Conflict, "foreign"):
            talks.save(loaded)
        assert talks.load("c").agent == "b"

    def test_a_conversation_is_given_away_and_back(self) -> None:
        talks, agents = self.store.conversations, self.store.agents
        agents.save(Agent(id="a"))
        talks.create("c", agent="a")
        held = agents.checkpoint("a")

        given = talks.update("c", agent="b")

        assert (talks.load("c").agent, given.step) == ("b", 2)
        assert talks.update("c", agent="b").id == given.id
        with raises(Conflict, "foreign"):
            agents.restore("a", held)
        talks.update("c", agent="a", title="Mine")
        agents.restore("a", held)
        assert (talks.load("c").agent, talks.load("c").title) == ("a", None)
        talks.update("c", agent=None, title="Nobody's")
        assert (talks.load("c").agent, talks.load("c").title) == (None, "Nobody's")
        with raises(NotFound):
            talks.update("none", agent="a")
        for wrong in untyped("", 5, "\ud800"):
            with raises(Unstorable):
                talks.update("c", agent=wrong)

    def test_a_new_conversation_can_be_saved_and_a_deleted_one_started_again(
        self,
    ) -> None:
        talks = self.store.conversations
        talks.save(Conversation(id="c", title="first"))
        talks.delete("c")

        talks.save(Conversation(id="c", title="second"))

        assert talks.load("c").title == "second"
        assert talks.save(Conversation(title="third")).id

    def test_the_fields_of_a_conversation_are_set_and_taken_back(self) -> None:
        talks = self.store.conversations
        talks.create("c", messages=[Message.user(LONG)])
        before = talks.load("c")

        talks.update(
            "c", title="t", summary="s", context={"k": 1}, tags=["x"], budget=9
        )
        talks.update("c", metadata={"m": LONG})
        changed = talks.load("c")
        assert (changed.title, changed.summary, changed.budget) == ("t", "s", 9)
        assert (changed.context, changed.tags) == ({"k": 1}, ["x"])
        assert changed.metadata == {"m": LONG}
        assert changed.messages == before.messages

        talks.update("c", title=None, summary=None, context={}, tags=[], budget=None)
        talks.update("c", metadata={})
        after = talks.load("c")
        after.checkpoint = before.checkpoint
        assert after == before
        assert talks.thread("c").load().keys() == {"messages", "counts", "created_at"}

    def test_single_keys_are_set_and_removed_beside_the_others(self) -> None:
        talks = self.store.conversations
        talks.create("c", context={"seed": 1, "none": None}, metadata={"m": LONG})

        talks.update("c", merge=True, context={"persona": "p"}, metadata={"n": 2})
        found = talks.load("c")
        assert found.context == {"seed": 1, "none": None, "persona": "p"}
        assert found.metadata == {"m": LONG, "n": 2}

        talks.update("c", merge=True, context={"seed": None}, metadata={"m": None})
        found = talks.load("c")
        assert found.context == {"none": None, "persona": "p"}
        assert found.metadata == {"n": 2}

        talks.update("c", merge=True, title="t", metadata={"n": None, "x": None})
        assert (talks.load("c").title, talks.load("c").metadata) == ("t", {})
        assert "metadata" not in talks.thread("c").load()
        talks.update("c", context={"only": 1})
        assert talks.load("c").context == {"only": 1}

    def test_a_stored_value_that_is_no_mapping_gives_way_to_single_keys(self) -> None:
        talks = self.store.conversations
        talks.thread("c").save({"messages": [], "context": ["a list"]})

        talks.update("c", merge=True, context={"k": 1})

        assert talks.load("c").context == {"k": 1}

    def test_merging_what_is_set_saves_nothing(self) -> None:
        talks = self.store.conversations
        talks.create("c", context={"seed": 1})
        first = talks.thread("c").get()

        assert talks.update("c", merge=True, context={"seed": 1}) == first
        assert talks.update("c", merge=True, context={}, metadata={}) == first
        assert talks.update("c", merge=True, context={"other": None}) == first

    def test_of_many_that_set_a_key_each_none_is_lost(self) -> None:
        talks = self.store.conversations
        talks.create("c")

        def set_key(n: int) -> None:
            talks.update("c", merge=True, context={f"{n}": n})

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(set_key, range(16)))

        assert talks.load("c").context == {f"{n}": n for n in range(16)}

    def test_only_a_mapping_can_be_merged(self) -> None:
        talks = self.store.conversations
        talks.create("c", context={"seed": 1})
        for wrong in untyped(None, [], 5, "text"):
            with raises(Unstorable):
                talks.update("c", merge=True, context=wrong)

        assert talks.load("c").context == {"seed": 1}

    def test_setting_what_is_set_saves_nothing(self) -> None:
        talks = self.store.conversations
        talks.create("c", title="t")
        first = talks.thread("c").get()

        assert talks.update("c", title="t") == first
        assert talks.archive("c", archived=False) == first

    def test_what_makes_no_sense_is_refused(self) -> None:
        talks = self.store.conversations
        talks.create("c")
        for wrong in untyped({"name": 1}, {"messages": []}, {"owner": "x"}):
            with raises(TypeError):
                talks.update("c", **wrong)
        for wrong in untyped("a tag"):
            with raises(Unstorable):
                talks.update("c", tags=wrong)
            with raises(Unstorable):
                talks.create("d", tags=wrong)
        for name in ("counts", "contents", "content_ids", "messages", "title", "id"):
            with raises(Unstorable):
                talks.save(Conversation(id="d", extra={name: [1]}))
        assert talks.find("d") is None

    def test_none_is_the_same_as_a_field_left_out(self) -> None:
        talks = self.store.conversations
        names = ("title", "summary", "context", "tags", "archived", "budget")
        [empty] = untyped(dict.fromkeys((*names, "metadata"), None))

        made = talks.create("c", **empty)
        [more] = untyped(Conversation(id="d", **empty))
        [more.messages, more.run, more.created_at, more.extra] = untyped(*[None] * 4)
        talks.save(more)

        for found in talks.load("c"), talks.load("d"):
            assert (found.tags, found.context, found.run) == ([], {}, {})
            assert (found.archived, found.metadata, found.messages) == (False, {}, [])
            assert found.created_at == made.created_at
        assert talks.update("c", **empty) == talks.thread("c").get()

    def test_a_field_of_another_type_is_refused(self) -> None:
        talks = self.store.conversations
        talks.create("c")
        others = {
            **{name: [5, b"x", ["x"]] for name in ("title", "summary")},
            **{name: [5, "x", ["x"]] for name in ("context", "metadata")},
            "tags": ["x", 5, [1], {"x": 1}],
            "archived": [1, "x"],
            "budget": ["x", 1.5, True],
        }

        for name, values in others.items():
            for wrong in untyped(*values):
                with raises(Unstorable):
                    talks.create("d", **{name: wrong})
                with raises(Unstorable):
                    talks.update("c", **{name: wrong})
        for name in ("run", "created_at", "messages", "extra"):
            for wrong in untyped("x", 1.5, True):
                with raises(Unstorable):
                    talks.save(untyped(Conversation)[0](id="d", **{name: wrong}))
        with raises(Unstorable):
            talks.save(untyped(Conversation)[0](id="d", extra={1: 2}))
        assert talks.find("d") is None
        talks.update("c", tags=untyped({"a set"})[0])
        assert talks.list()[0].tags == ("a set",)

    def test_what_is_no_transcript_is_not_loaded_as_one(self) -> None:
        talks = self.store.conversations
        for wrong in (5, None, "text", {"role": "user"}, [None], [["x"]], [HOUR]):
            talks.thread("c").save({"messages": wrong})

            with raises(FormatMismatch):
                talks.load("c")
            assert [found.id for found in talks.list()] == ["c"]

        for ids, contents in ((5, None), ([["x"]], ["y"]), ({}, "text")):
            state = {"messages": ["x", {}], "content_ids": ids, "contents": contents}
            talks.thread("c").save(state)

            assert talks.load("c").messages == ["x", {}]

    def test_a_newer_writers_field_of_a_conversation_is_kept(self) -> None:
        talks = self.store.conversations
        talks.create("c", messages=[Message.user("x")])
        thread = talks.thread("c")
        thread.save({**thread.load(), "mood": {"of": "tomorrow"}})

        talks.add("c", Message.user("y"))
        talks.update("c", title="t")
        loaded = talks.load("c")
        loaded.summary = "s"
        talks.save(loaded)

        assert loaded.extra == {"mood": {"of": "tomorrow"}}
        assert talks.load("c") == loaded
        assert thread.load()["mood"] == {"of": "tomorrow"}
