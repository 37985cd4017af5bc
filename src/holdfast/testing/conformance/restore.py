"""Restoring an agent's checkpoints: everything is as it was, or nothing changed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from holdfast.agents import Agent, AgentCheckpoint
from holdfast.messages import Message
from holdfast.testing.conformance.cases import AgentCases


class RestoreTests(AgentCases):
    """A restore brings an agent back, and another restore undoes it."""

    def test_everything_goes_back_to_where_it_was(self) -> None:
        talks = self.store.conversations
        self.busy_agent()
        talks.create("gone", agent="a", owner="ann", messages=[self.long()], tags=["t"])
        before = self.world()
        made = self.store.agents.checkpoint("a", "here")
        agent = self.store.agents.load("a")
        agent.state = {"changed": True}
        self.store.agents.save(agent)
        talks.add("one", self.long())
        talks.delete("gone")
        talks.create("late", agent="a")

        done = self.store.agents.restore("a", "here")

        assert self.world() == before
        assert done.checkpoint == made
        assert (done.rewound, done.revived) == (("one",), ("gone",))
        assert done.removed == ("late",)
        assert self.store.verify()

    def test_a_restore_is_undone_by_restoring_what_was_before_it(self) -> None:
        talks = self.store.conversations
        self.busy_agent()
        old = self.world()
        made = self.store.agents.checkpoint("a", "here")
        talks.delete("two")
        talks.add("one", self.long())
        talks.create("late", agent="a", owner="bob", messages=[self.long()])
        self.store.agents.save(Agent(id="a", name="changed"))
        new = self.world()

        done = self.store.agents.restore("a", made)
        assert (done.recovery.kind, done.recovery.agent_id) == ("recovery", "a")
        assert "here" in done.recovery.name
        undone = self.store.agents.restore("a", done.recovery)

        assert self.world() == new
        assert (undone.rewound, undone.revived) == (("one",), ("late",))
        assert undone.removed == ("two",)
        self.store.agents.restore("a", undone.recovery)
        assert self.world() == old
        assert self.store.verify()

    def test_a_restore_replaces_a_new_conversation_with_the_same_id(
        self,
    ) -> None:
        talks = self.store.conversations
        self.busy_agent()
        old = self.world()
        made = self.store.agents.checkpoint("a")
        talks.delete("one")
        talks.create("one", agent="a", owner="bob", messages=[self.long()])
        new = self.world()

        done = self.store.agents.restore("a", made)

        assert self.world() == old
        assert (done.rewound, done.revived, done.removed) == ((), ("one",), ())
        self.store.agents.restore("a", done.recovery)
        assert self.world() == new
        assert talks.load("one").owner == "bob"

    def test_a_new_conversation_with_the_same_ids_is_not_taken_for_the_old(
        self,
    ) -> None:
        made: list[AgentCheckpoint] = []
        worlds: list[object] = []
        talks = self.store.conversations
        self.busy_agent()
        for title in ("old", "new"):
            talks.delete("one")
            talks.create("one", agent="a")
            thread = talks.thread("one")
            thread.save({**thread.load(), "title": title}, id="same")
            made.append(self.store.agents.checkpoint("a"))
            worlds.append(self.world())

        for n in (0, 1, 0, 1):
            talks.delete("one")
            self.store.agents.restore("a", made[n])
            assert self.world() == worlds[n]

    def test_owner_and_metadata_of_the_threads_come_back(self) -> None:
        talks = self.store.conversations
        self.busy_agent(owner="ann")
        talks.thread("one").describe(metadata={"k": 1})
        first = self.store.agents.checkpoint("a")
        talks.thread("one").describe(owner="bob", metadata={"k": 2})
        second = self.store.agents.checkpoint("a")
        talks.thread("two").describe(owner=None)

        def about() -> list[object]:
            threads = [talks.thread(id_).about for id_ in ("one", "two")]
            return [(t.owner, t.metadata) for t in threads if t is not None]

        self.store.agents.restore("a", first)
        assert about() == [("ann", {"k": 1}), ("ann", {})]
        talks.delete("one", "two")
        done = self.store.agents.restore("a", second)
        assert about() == [("bob", {"k": 2}), ("ann", {})]
        assert done.revived == ("one", "two")
        assert [talk.id for talk in talks.list(owner="bob")] == ["one"]


class RivalTests(AgentCases):
    """Other writers work while checkpoints are made and restored."""

    def test_a_checkpoint_made_while_others_write_is_of_one_moment(self) -> None:
        talks = self.store.conversations
        self.store.agents.save(Agent(id="a"))
        for id_ in "xy":
            talks.create(id_, agent="a")

        def write() -> None:
            for n in range(30):
                # x before y, so that y never has more messages than x.
                talks.add("x", Message.user(f"{n}"))
                talks.add("y", Message.user(f"{n}"))

        def pin(name: str) -> str:
            return self.store.agents.checkpoint("a", name, keep=5).id

        with ThreadPoolExecutor(2) as pool:
            writing = pool.submit(write)
            list(pool.map(pin, "abcdefgh"))
            writing.result()

        made = list(self.store.agents.checkpoints("a"))
        assert len(made) == 5
        for checkpoint in made:
            self.store.agents.restore("a", checkpoint)
            counts = {talk.id: talk.messages for talk in talks.list()}
            assert 0 <= counts["x"] - counts["y"] <= 1
            assert talks.load("x").message_count == counts["x"]
        assert self.store.verify()

    def test_a_restore_while_others_write_is_made_and_loses_nothing(self) -> None:
        talks = self.store.conversations
        self.busy_agent()
        made = self.store.agents.checkpoint("a")

        def write(n: int) -> str:
            return talks.add(("one", "two")[n % 2], Message.user(f"new {n}")).id

        with ThreadPoolExecutor(3) as pool:
            restoring = pool.submit(
                lambda: [self.store.agents.restore("a", made) for _ in range(5)]
            )
            written = list(pool.map(write, range(60)))
            done = restoring.result()

        assert len({restored.recovery.id for restored in done}) == 5
        for n, id_ in enumerate(("one", "two")):
            saved = {c.id for c in talks.thread(id_).history(None, all=True)}
            assert saved >= {*written[n::2]}
        for talk in talks.list():
            assert talks.load(talk.id).message_count == talk.messages
        assert self.store.verify()

    def test_of_many_checkpoints_made_at_once_all_are_whole(self) -> None:
        self.busy_agent()
        before = self.world()

        def pin(name: str) -> AgentCheckpoint:
            return self.store.agents.checkpoint("a", name)

        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(pin, "abcdefgh"))

        assert len({checkpoint.id for checkpoint in made}) == 8
        self.store.conversations.delete("one", "two")
        for checkpoint in made:
            self.store.agents.restore("a", checkpoint)
            assert self.world() == before


class PinTests(AgentCases):
    """The threads that keep states for the checkpoints of an agent."""

    def test_its_pins_are_not_listed_among_the_threads(self) -> None:
        self.busy_agent()
        before = {thread.id for thread in self.store.threads()}
        self.store.agents.checkpoint("a")

        listed = {thread.id for thread in self.store.threads()}

        assert listed - before == {"checkpoints:a"}
        assert len(self.store.threads(kind="pin")) == 3
        assert len(self.store.conversations.list()) == 2
        assert self.store.agents.load("a").active_conversations == ("two", "one")
