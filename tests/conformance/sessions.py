"""Sessions: conversations of users, and how long they are kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from holdfast.conversations import Conversation
from holdfast.errors import Conflict, NotFound, Unstorable
from holdfast.messages import Message
from holdfast.retention import Retention
from holdfast.testing import raises
from holdfast.testing.conformance.cases import Cases, untyped

HOUR = timedelta(hours=1)


class SessionTests(Cases):
    """A session is the conversation of one user."""

    def test_a_users_session_is_made_once(self) -> None:
        talks = self.store.conversations
        first = talks.get_or_create("ann", "s", agent="a", title="t")
        talks.add("s", Message.user("x"))

        again = talks.get_or_create("ann", "s", agent="other", title="other")

        assert (first.owner, first.agent, first.title) == ("ann", "a", "t")
        assert again.message_count == 1
        assert (again.agent, again.title) == ("a", "t")

    def test_a_session_with_nothing_but_a_journal_is_made(self) -> None:
        talks = self.store.conversations
        talks.thread("s").record("seen", 1)
        self.store.thread("conversation:t", owner="ann").record("seen", 1)

        for id_ in "st":
            assert talks.get_or_create("ann", id_).id == id_
            assert talks.thread(id_).step == 1

    def test_without_an_id_each_is_a_new_one(self) -> None:
        talks = self.store.conversations
        ids = {talks.get_or_create("ann").id for _ in range(3)}

        assert {talk.id for talk in talks.list(owner="ann")} == ids
        assert len(ids) == 3

    def test_another_users_session_is_not_there(self) -> None:
        talks = self.store.conversations
        talks.get_or_create("ann", "s", title="secret")
        talks.create("nobody's")

        for id_ in ("s", "nobody's"):
            with raises(NotFound):
                talks.get_or_create("bob", id_)
            with raises(NotFound):
                talks.load(id_, owner="bob")
            assert talks.find(id_, owner="bob") is None
            assert talks.delete(id_, owner="bob") == 0
        assert talks.load("s", owner="ann").title == "secret"

    def test_an_unknown_user_has_no_sessions(self) -> None:
        talks = self.store.conversations
        talks.create("s", owner="ann", title="secret")

        for wrong in untyped(None, "", 5):
            with raises(Unstorable):
                talks.get_or_create(wrong, "s")
            with raises(Unstorable):
                talks.get_or_create(wrong)

    def test_of_many_callers_one_makes_the_session(self) -> None:
        talks = self.store.conversations

        def want(user: str) -> Conversation:
            return talks.get_or_create(user, "s")

        with ThreadPoolExecutor(8) as pool:
            got = list(pool.map(want, ["ann"] * 16))

        assert {talk.checkpoint for talk in got} == {talks.thread("s").get().id}
        assert talks.thread("s").step == 1

    def test_of_two_users_one_gets_the_session(self) -> None:
        talks = self.store.conversations

        def want(user: str) -> str | None:
            try:
                return talks.get_or_create(user, "s").owner
            except NotFound:
                return None

        with ThreadPoolExecutor(8) as pool:
            got = [*pool.map(want, ["ann", "bob"] * 8)]

        [owner] = {who for who in got if who is not None}
        assert got == [owner if who == owner else None for who in ["ann", "bob"] * 8]
        assert talks.load("s").owner == owner


class SessionRetentionTests(Cases):
    """Retention removes unused sessions, and all but the newest of a user."""

    def test_an_idle_session_goes(self) -> None:
        talks = self.store.conversations
        talks.create("old", owner="ann")
        talks.create("used", owner="ann")
        self.clock.advance(2 * HOUR)
        talks.add("used", Message.user("x"))

        dry = talks.prune(idle=HOUR, dry_run=True)
        assert (dry.threads, len(talks.list())) == (1, 2)
        assert talks.prune(idle=HOUR) == dry
        assert [talk.id for talk in talks.list()] == ["used"]
        assert talks.prune(idle=HOUR).threads == 0

    def test_each_owner_keeps_the_newest(self) -> None:
        talks = self.store.conversations
        talks.create("quiet", owner="bob")
        talks.create("nobody's")
        for n in range(6):
            talks.create(f"{n}", owner="ann")
        talks.add("0", Message.user("x"))

        assert talks.prune(per_owner=2).threads == 4

        left = {talk.id for talk in talks.list()}
        assert left == {"0", "5", "quiet", "nobody's"}

    def test_all_owners_together_keep_the_newest(self) -> None:
        talks = self.store.conversations
        for n in range(3):
            for owner in ("ann", None):
                talks.create(f"{n} of {owner}", owner=owner)
        self.store.thread("mine").save({})

        assert talks.prune(in_all=3).threads == 3

        left = {talk.id for talk in talks.list()}
        assert left == {"2 of None", "2 of ann", "1 of None"}
        assert self.store.thread("mine").step == 1

    def test_the_sessions_of_one_user_or_agent_are_pruned(self) -> None:
        talks = self.store.conversations
        for owner in ("ann", "bob"):
            for agent in ("a", "b"):
                talks.create(f"{owner} {agent}", owner=owner, agent=agent)
        self.clock.advance(2 * HOUR)

        assert talks.prune(idle=HOUR, owner="ann", agent="a").threads == 1
        assert talks.prune(in_all=1, owner="bob").threads == 1
        assert talks.prune(idle=HOUR, agent="b").threads == 2

        assert list(talks.list()) == []

    def test_pruning_sessions_touches_nothing_else(self) -> None:
        store = self.store
        store.thread("mine", owner="ann").save({})
        store.documents.save("notes", "x")
        store.conversations.create("c", owner="ann")
        self.clock.advance(2 * HOUR)

        assert store.conversations.prune(idle=HOUR, per_owner=1).threads == 1

        assert store.thread("mine").step == 1
        assert store.documents.load("notes").content == "x"

    def test_a_prune_of_too_much_is_refused(self) -> None:
        for n in range(4):
            self.store.conversations.create(f"{n}", owner="ann")

        with raises(Conflict, "too_much"):
            self.store.conversations.prune(per_owner=1, at_most=0.5)

        assert len(self.store.conversations.list()) == 4

    def test_a_store_can_prune_sessions_by_itself_once_in_a_while(self) -> None:
        policy = Retention(kinds=("conversation",), idle=HOUR, threads_per_owner=2)
        store = self.open(retention=policy, prune_every=HOUR)
        store.thread("mine", owner="ann").save({})
        for n in range(5):
            store.conversations.create(f"{n}", owner="ann")
        # It was done after the first save and is not due again.
        assert len(store.conversations.list()) == 5

        self.clock.advance(HOUR)
        store.conversations.add("0", Message.user("x"))

        assert [talk.id for talk in store.conversations.list()] == ["0", "4"]
        self.clock.advance(2 * HOUR)
        store.conversations.add("0", Message.user("y"))
        assert [talk.id for talk in store.conversations.list()] == ["0"]
        assert store.thread("mine").step == 1
