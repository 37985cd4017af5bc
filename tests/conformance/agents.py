"""Agents: saving, finding, listing, deleting."""

from __future__ import annotations

from datetime import timedelta

from holdfast.agents import Agent
from holdfast.errors import Conflict, FormatMismatch, NotFound, Unstorable
from holdfast.messages import Message
from holdfast.retention import Retention
from holdfast.testing import raises
from holdfast.testing.conformance.cases import LONG, Cases, untyped
from holdfast.testing.trials.hostile import HOSTILE


class AgentTests(Cases):
    """An agent is a record with a version."""

    def test_an_agent_is_loaded_as_it_was_saved(self) -> None:
        agent = Agent(
            id="scout",
            name="Scout",
            type="researcher",
            system_prompt="You look things up. " + LONG,
            capabilities=["search", "read"],
            config={"model": "m", "temperature": 0.2, "stop": None},
            state={"seen": [1, 2, (3, b"\0")], "notes": {"a": LONG}},
            metadata={"team": 7},
        )

        saved = self.store.agents.save(agent)

        assert saved is agent
        assert self.store.agents.load("scout") == agent
        assert self.store.agents.find("scout") == agent

    def test_an_agent_is_there_after_reopening(self) -> None:
        saved = self.store.agents.save(Agent(id="a", state={"text": LONG}))

        assert self.reopen().agents.load("a") == saved

    def test_saving_gives_version_times_and_checkpoint(self) -> None:
        agent = self.store.agents.save(Agent(id="a"))
        begun = self.clock.now
        self.clock.advance(timedelta(hours=1))

        self.store.agents.save(agent)

        assert (agent.version, agent.created_at) == (2, begun)
        assert agent.updated_at == self.clock.now
        assert agent.checkpoint == self.store.agents.thread("a").get().id

    def test_an_agent_that_was_made_elsewhere_keeps_its_time(self) -> None:
        self.store.agents.save(Agent(id="a", created_at=5))

        assert self.store.agents.load("a").created_at == 5

    def test_an_agent_without_an_id_gets_one(self) -> None:
        one, other = (self.store.agents.save(Agent(name="n")) for _ in range(2))

        assert one.id
        assert one.id != other.id
        assert self.store.agents.load(one.id) == one

    def test_an_agent_that_is_not_there(self) -> None:
        assert self.store.agents.find("nobody") is None
        with raises(NotFound) as missing:
            self.store.agents.load("nobody")
        assert "nobody" in str(missing.error)

    def test_a_value_of_its_own_is_kept_under_a_key(self) -> None:
        agent = Agent(id="a")
        agent.set_state("plan", ["read", "write"])
        self.store.agents.save(agent)

        loaded = self.store.agents.load("a")

        assert loaded.get_state("plan") == ["read", "write"]
        assert loaded.get_state("other") is None
        assert loaded.get_state("other", 5) == 5

    def test_a_loaded_agent_can_be_saved_again_and_again(self) -> None:
        self.store.agents.save(Agent(id="a"))
        agent = self.store.agents.load("a")

        for n in range(1, 4):
            agent.state["n"] = n
            self.store.agents.save(agent)

        assert self.store.agents.load("a").version == 4
        assert self.store.agents.load("a").state == {"n": 3}

    def test_of_two_that_loaded_an_agent_the_second_is_refused(self) -> None:
        self.store.agents.save(Agent(id="a", name="first"))
        one, other = self.store.agents.load("a"), self.store.agents.load("a")
        one.name, other.name = "one", "other"
        self.store.agents.save(one)

        with raises(Conflict, "head_moved") as refused:
            self.store.agents.save(other)

        assert refused.error.found == self.store.agents.thread("a").get()
        assert self.store.agents.load("a") == one
        self.store.agents.save(one)

    def test_an_agent_is_refused_also_when_what_was_loaded_is_pruned(self) -> None:
        numbers = iter(range(1, 99))
        store = self.open(new_id=lambda: str(next(numbers)))
        stale = store.agents.save(Agent(id="a", name="stale"))
        for n in range(9):
            store.agents.save(Agent(id="a", name=f"{n}"))
        store.prune(Retention(last=1))
        # The id of the agent that is left begins like that of the deleted one.
        assert (stale.checkpoint, store.agents.thread("a").get().id) == ("1", "10")

        with raises(Conflict, "head_moved"):
            store.agents.save(stale)

        assert store.agents.load("a").name == "8"

    def test_an_agent_made_by_hand_replaces_what_is_there(self) -> None:
        first = self.store.agents.save(Agent(id="a", name="old", state={"n": 1}))
        self.clock.advance(timedelta(hours=1))

        self.store.agents.save(Agent(id="a", name="new"))

        loaded = self.store.agents.load("a")
        assert (loaded.name, loaded.state, loaded.version) == ("new", {}, 2)
        assert loaded.created_at == first.created_at

    def test_an_older_version_can_be_loaded_but_not_saved_over_the_newer(self) -> None:
        first = self.store.agents.save(Agent(id="a", name="one"))
        checkpoint = first.checkpoint
        first.name = "two"
        self.store.agents.save(first)
        assert checkpoint is not None

        old = self.store.agents.load("a", checkpoint)

        assert (old.name, old.version) == ("one", 1)
        assert old == self.store.agents.load("a", "@~1")
        with raises(Conflict, "head_moved"):
            self.store.agents.save(old)
        old.checkpoint = None
        assert self.store.agents.save(old).version == 3

    def test_a_newer_writers_field_of_an_agent_is_kept(self) -> None:
        self.store.agents.save(Agent(id="a", name="n"))
        thread = self.store.agents.thread("a")
        thread.save({**thread.load(), "mood": {"of": "tomorrow"}})

        agent = self.store.agents.load("a")
        agent.name = "changed"
        self.store.agents.save(agent)

        assert agent.extra == {"mood": {"of": "tomorrow"}}
        assert thread.load()["mood"] == {"of": "tomorrow"}
        assert self.store.agents.load("a") == agent

    def test_a_field_of_an_older_writer_is_as_it_begins(self) -> None:
        self.store.agents.thread("a").save({"name": "n"})

        agent = self.store.agents.load("a")

        assert (agent.name, agent.type, agent.config, agent.state) == ("n", "", {}, {})
        assert [listed.id for listed in self.store.agents.list()] == ["a"]

    def test_none_in_a_field_of_an_agent_is_how_it_begins(self) -> None:
        names = ("name", "type", "system_prompt", "capabilities", "config", "state")
        [none] = untyped(dict.fromkeys((*names, "metadata", "created_at"), None))

        made = self.store.agents.save(Agent(id="a", **none))
        thread = self.store.agents.thread("b")
        thread.save(none)

        for found in (*self.store.agents.list(), self.store.agents.load("a")):
            assert (found.name, found.type, found.capabilities) == ("", "", [])
            assert (found.config, found.state, found.metadata) == ({}, {}, {})
            assert found.created_at in (0, made.created_at)
        assert self.store.agents.load("b").capabilities == []

    def test_a_field_of_another_type_is_refused_for_an_agent(self) -> None:
        agents = self.store.agents
        for name in ("name", "type", "system_prompt", "capabilities"):
            for wrong in untyped(5, b"x", [1], {"x": 1}):
                with raises(Unstorable):
                    agents.save(Agent(id="a", **{name: wrong}))
        for name in ("config", "state", "metadata", "created_at", "extra"):
            for wrong in untyped("x", 1.5, ["x"], True):
                with raises(Unstorable):
                    agents.save(Agent(id="a", **{name: wrong}))
        assert agents.find("a") is None

    def test_what_is_a_field_cannot_be_extra(self) -> None:
        with raises(Unstorable):
            self.store.agents.save(Agent(id="a", extra={"name": "another"}))
        with raises(Unstorable):
            self.store.agents.save(Agent(id="a", extra={"id": "another"}))

        assert self.store.agents.find("a") is None

    def test_what_cannot_be_stored_changes_nothing(self) -> None:
        agent = self.store.agents.save(Agent(id="a", state={"n": 1}))
        agent.state["f"] = print

        with raises(Unstorable) as refused:
            self.store.agents.save(agent)

        assert "state.state.f" in refused.error.path
        assert self.store.agents.load("a").state == {"n": 1}
        assert agent.version == 1

    def test_a_thread_that_holds_no_agent_is_not_taken_for_one(self) -> None:
        self.store.thread("agent:a").save(["a list"])
        self.store.agents.thread("b").save(["a list"])
        self.store.agents.save(Agent(id="c"))

        for name in "ab":
            with raises(FormatMismatch):
                self.store.agents.load(name)
        assert {agent.id for agent in self.store.agents.list()} == {"b", "c"}


class AgentListingTests(Cases):
    """Listing agents, and what they talk about."""

    def test_agents_are_listed_last_used_first(self) -> None:
        for name in "abc":
            self.store.agents.save(Agent(id=name, name=name.upper(), state={"t": LONG}))
        self.store.agents.save(self.store.agents.load("a"))
        self.store.thread("other").save({})

        listed = self.store.agents.list()

        assert [agent.id for agent in listed] == ["a", "c", "b"]
        assert listed[0] == self.store.agents.load("a")

    def test_they_are_listed_by_type_and_in_pages(self) -> None:
        for n in range(10):
            self.store.agents.save(Agent(id=f"{n}", type="odd" if n % 2 else "even"))

        found: list[str] = []
        after: int | None = None
        while True:
            page = self.store.agents.list(type="odd", limit=2, after=after)
            assert len(page) <= 2
            found += [agent.id for agent in page]
            after = page.cursor
            if after is None:
                break

        assert found == ["9", "7", "5", "3", "1"]
        assert len(self.store.agents.list(limit=None)) == 10
        for wrong in untyped(0, -1, 1.5, "all", True):
            with raises(Unstorable):
                self.store.agents.list(limit=wrong)

    def test_the_active_conversations_are_always_true(self) -> None:
        agents, talks = self.store.agents, self.store.conversations
        agents.save(Agent(id="a"))

        def active() -> tuple[str, ...]:
            return agents.load("a").active_conversations

        assert active() == ()
        talks.create("one", agent="a")
        talks.create("two", agent="a", owner="me")
        talks.create("not mine", agent="b")
        talks.create("nobody's")
        assert active() == ("two", "one")
        talks.add("one", Message.user("hello"))
        assert active() == ("one", "two")
        talks.archive("one")
        assert active() == ("two",)
        talks.archive("one", archived=False)
        talks.thread("one").fork("conversation:fork")
        assert set(active()) == {"one", "two", "fork"}
        pinned = agents.checkpoint("a")
        talks.delete("two", "fork")
        talks.create("late", agent="a")
        assert set(active()) == {"one", "late"}
        agents.restore("a", pinned)
        assert set(active()) == {"one", "two", "fork"}

    def test_the_list_of_active_conversations_is_not_what_is_saved(self) -> None:
        agent = self.store.agents.save(Agent(id="a", active_conversations=("ghost",)))
        self.store.conversations.create("real", agent="a")

        assert self.store.agents.load("a").active_conversations == ("real",)
        self.store.agents.save(agent)
        assert self.store.agents.load("a").active_conversations == ("real",)

    def test_any_id_of_an_agent_is_only_an_id(self) -> None:
        for n, id_ in enumerate(HOSTILE):
            self.store.agents.save(Agent(id=id_, name=f"{n}"))
            self.store.conversations.create(id_, agent=id_, title=f"{n}")
            self.store.agents.checkpoint(id_)

        for n, id_ in enumerate(HOSTILE):
            agent = self.store.agents.load(id_)
            assert (agent.name, agent.active_conversations) == (f"{n}", (id_,))
            assert len(self.store.agents.checkpoints(id_)) == 1
        assert {agent.id for agent in self.store.agents.list()} == {*HOSTILE}
        for id_ in HOSTILE:
            assert self.store.agents.delete(id_) == 1
        assert self.store.stats().threads == 0

    def test_an_agent_that_cannot_be_named_so_is_refused(self) -> None:
        for wrong in untyped("a\0b", "\ud800", "x" * 501, 5, b"a"):
            with raises(Unstorable):
                self.store.agents.save(Agent(id=wrong))
            with raises(Unstorable):
                self.store.agents.load(wrong)
            with raises(Unstorable):
                self.store.agents.delete(wrong)
            with raises(Unstorable):
                self.store.agents.checkpoint(wrong)
        self.store.agents.save(Agent(id="x" * 500))
        assert self.store.agents.checkpoint("x" * 500).agent_id == "x" * 500


class AgentDeletionTests(Cases):
    """Deleting an agent deletes everything that belongs to it."""

    def test_its_conversations_and_checkpoints_go_with_it(self) -> None:
        store = self.store
        for id_ in ("a", "b"):
            store.agents.save(Agent(id=id_))
            store.conversations.create(f"of {id_}", agent=id_, title=LONG)
            store.agents.checkpoint(id_)
        store.conversations.create("of nobody")
        store.conversations.archive("of a")
        store.conversations.create("deleted", agent="a", title=LONG)
        store.agents.checkpoint("a")
        store.conversations.delete("deleted")

        assert store.agents.delete("a") == 1

        facts = store.stats()
        assert (facts.agents, facts.conversations, facts.agent_checkpoints) == (1, 2, 1)
        assert {talk.id for talk in store.conversations.list()} == {"of b", "of nobody"}
        assert store.agents.find("a") is None
        assert len(store.agents.checkpoints("a")) == 0
        assert store.agents.restore("b", "manual").revived == ()
        assert store.verify()

    def test_nothing_of_a_deleted_agent_is_left(self) -> None:
        store = self.store
        store.agents.save(Agent(id="a", state={"text": LONG}))
        store.conversations.create("c", agent="a", messages=[Message.user(LONG)])
        pinned = store.agents.checkpoint("a")
        store.conversations.create("late", agent="a", messages=[Message.user(LONG)])
        store.agents.restore("a", pinned)
        store.agents.delete("a")

        facts = store.stats()
        assert (facts.threads, facts.checkpoints, facts.segments) == (0, 0, 0)

    def test_deleting_agents_says_how_many_there_were(self) -> None:
        for id_ in "abc":
            self.store.agents.save(Agent(id=id_))

        assert self.store.agents.delete("a", "b", "a", "nobody") == 2
        assert self.store.agents.delete("a") == 0
        assert self.store.agents.delete() == 0
        assert [agent.id for agent in self.store.agents.list()] == ["c"]

    def test_a_deleted_agent_can_be_made_again_by_hand(self) -> None:
        self.store.agents.save(Agent(id="a", name="old"))
        self.store.conversations.create("c", agent="a")
        self.store.agents.checkpoint("a", "old")
        self.store.agents.delete("a")
        self.clock.advance(timedelta(hours=1))

        new = self.store.agents.save(Agent(id="a", name="new"))

        assert (new.version, new.created_at) == (1, self.clock.now)
        assert self.store.agents.load("a").active_conversations == ()
        with raises(NotFound):
            self.store.agents.restore("a", "old")
        self.store.agents.checkpoint("a", "new")
        assert [c.name for c in self.store.agents.checkpoints("a")] == ["new"]

    def test_an_agent_loaded_before_its_deletion_does_not_revive_it(self) -> None:
        stale = self.store.agents.save(Agent(id="a"))
        self.store.agents.delete("a")

        with raises(Conflict, "thread_deleted"):
            self.store.agents.save(stale)
        assert self.store.agents.find("a") is None

        self.store.agents.save(Agent(id="a", name="new"))
        with raises(Conflict, "head_moved"):
            self.store.agents.save(stale)
        assert self.store.agents.load("a").name == "new"
