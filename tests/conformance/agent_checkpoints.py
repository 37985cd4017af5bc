"""Checkpoints of an agent with all its conversations: made, found, kept, deleted."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from holdfast import Statistics
from holdfast.agents import Agent, AgentCheckpoint
from holdfast.errors import Conflict, NotFound, Unstorable
from holdfast.messages import Attachment, Message, ToolCall
from holdfast.retention import Retention, Thin
from holdfast.testing._cases import LONG, AgentCases, untyped
from holdfast.testing._raises import raises
from inner.messages import KINDS

HOUR = timedelta(hours=1)
NEVER = timedelta(0)


class AgentCheckpointTests(AgentCases):
    """A checkpoint holds an agent and all its conversations, and copies nothing."""

    def test_a_checkpoint_says_what_it_holds(self) -> None:
        self.busy_agent()
        self.store.conversations.create("not its own", messages=[Message.user("x")])

        made = self.store.agents.checkpoint(
            "a", "before the trip", "pre_operation", "in case", metadata={"trip": 7}
        )

        assert (made.agent_id, made.name) == ("a", "before the trip")
        assert (made.kind, made.description) == ("pre_operation", "in case")
        assert (made.conversations, made.messages) == (2, 7)
        assert (made.metadata, made.created_at) == ({"trip": 7}, self.clock.now)
        assert made.size > 4 * len(LONG)
        assert list(self.store.agents.checkpoints("a")) == [made]

    def test_a_checkpoint_without_a_name_is_called_by_its_kind(self) -> None:
        self.store.agents.save(Agent(id="a"))

        made = self.store.agents.checkpoint("a")

        assert (made.name, made.kind) == ("manual", "manual")
        assert (made.description, made.metadata) == (None, {})
        assert (made.conversations, made.messages) == (0, 0)

    def test_a_checkpoint_copies_nothing(self) -> None:
        self.busy_agent()
        file = Attachment(content=LONG * 100)
        self.store.conversations.add("one", Message.user("file", attachments=[file]))
        before = self.store.stats()

        self.store.agents.checkpoint("a")

        after = self.store.stats()
        assert after.stored_bytes - before.stored_bytes < 2000
        assert after.segments - before.segments <= 1
        assert (after.conversations, after.messages) == (2, 8)
        assert after.agent_checkpoints == 1

    def test_one_more_message_costs_the_next_checkpoint_next_to_nothing(self) -> None:
        self.busy_agent()
        for n in range(20):
            self.store.conversations.create(
                f"{n}", agent="a", messages=[Message.user(f"{n} {LONG}")] * 10
            )
        self.store.agents.checkpoint("a")
        before = self.store.stats()

        self.store.conversations.add("one", Message.user("one more"))
        made = self.store.agents.checkpoint("a")

        after = self.store.stats()
        assert after.stored_bytes - before.stored_bytes < 2000
        assert (after.checkpoints - before.checkpoints, made.conversations) == (2, 22)

    def test_the_list_of_what_is_pinned_does_not_grow_with_the_checkpoints(
        self,
    ) -> None:
        self.store.agents.save(Agent(id="a"))
        for n in range(70):
            self.store.agents.save(Agent(id="a", name=f"{n}"))
            self.store.agents.checkpoint("a", f"at {n}")

        assert len(self.store.thread("checkpoints:a").load()["pins"]) < 66
        for n in (0, 65, 69):
            found = self.store.agents.load_checkpoint("a", f"at {n}")
            assert found.agent.name == f"{n}"

    def test_pins_cannot_be_deleted_from_under_their_checkpoints(self) -> None:
        self.busy_agent()
        self.store.agents.checkpoint("a", "kept")

        with raises(Unstorable):
            self.store.delete(kind="pin")

        assert len(self.store.threads(kind="pin")) == 3

    def test_what_is_no_agent_has_no_checkpoint(self) -> None:
        self.store.conversations.create("c", agent="ghost")

        for id_ in ("nobody", "ghost"):
            with raises(NotFound):
                self.store.agents.checkpoint(id_)
            with raises(NotFound):
                self.store.agents.restore(id_, "manual")
            assert self.store.agents.delete_checkpoint(id_, "manual") == 0
            assert list(self.store.agents.checkpoints(id_)) == []
        assert self.store.stats().threads == 1

    def test_a_kind_is_one_of_four(self) -> None:
        self.store.agents.save(Agent(id="a"))

        made = [self.store.agents.checkpoint("a", kind=kind).kind for kind in KINDS]

        assert made == ["automatic", "manual", "pre_operation", "recovery"]
        for wrong in untyped("save", "Manual", "", None, 5, []):
            with raises(Unstorable):
                self.store.agents.checkpoint("a", kind=wrong)
        for wrong in untyped("", "a\0b", "x" * 513, 5):
            with raises(Unstorable):
                self.store.agents.checkpoint("a", wrong)
        for wrong in untyped("@", "label:x", "", 5):
            with raises(Unstorable):
                self.store.agents.checkpoint("a", id=wrong)
        with raises(Unstorable):
            self.store.agents.checkpoint("a", metadata={"f": print})
        assert len(self.store.agents.checkpoints("a")) == 4

    def test_a_checkpoint_repeated_with_its_id_is_made_once(self) -> None:
        self.busy_agent()
        first = self.store.agents.checkpoint("a", id="mine")

        assert self.store.agents.checkpoint("a", id="mine") == first
        self.store.conversations.add("one", Message.user("changed"))
        with raises(Conflict, "id_taken"):
            self.store.agents.checkpoint("a", id="mine")

        assert list(self.store.agents.checkpoints("a")) == [first]
        self.store.agents.checkpoint("a", id="other")
        assert self.store.verify()

    def test_checkpoints_are_listed_newest_first_by_kind_and_in_pages(self) -> None:
        self.store.agents.save(Agent(id="a"))
        made = [
            self.store.agents.checkpoint("a", f"{n}", KINDS[n % 2]) for n in range(11)
        ]

        for kind in (None, "manual", "automatic"):
            expected = [c for c in reversed(made) if kind in (None, c.kind)]
            found = list(self.store.agents.checkpoints("a", kind=kind))
            assert found == expected
            paged: list[AgentCheckpoint] = []
            before: int | None = None
            while True:
                page = self.store.agents.checkpoints(
                    "a", kind=kind, limit=2, before=before
                )
                paged += page
                before = page.cursor
                if before is None:
                    break
            assert paged == expected
        for wrong in untyped(0, -1, 1.5, "all", True):
            with raises(Unstorable):
                self.store.agents.checkpoints("a", limit=wrong)

    def test_a_checkpoint_is_named_in_many_ways(self) -> None:
        agents = self.store.agents
        agents.save(Agent(id="a"))
        # Names that read as something else, or as the beginning of an id.
        names = ["plain", "@home", "@~1", "label:x", "id-0000", "manual", "\u6f22"]
        made = [agents.checkpoint("a", x, id=f"c{n}") for n, x in enumerate(names)]
        agents.checkpoint("a", "plain", id="newer")

        for checkpoint in made:
            assert agents.restore("a", checkpoint).checkpoint == checkpoint
            assert agents.restore("a", checkpoint.id).checkpoint == checkpoint
        for checkpoint in made[1:]:
            assert agents.restore("a", checkpoint.name).checkpoint == checkpoint
        assert agents.restore("a", "plain").checkpoint.id == "newer"
        assert agents.restore("a", "new").checkpoint.id == "newer"
        assert agents.restore("a", "@").checkpoint.kind == "recovery"
        with raises(NotFound, "ambiguous"):
            agents.restore("a", "c")
        with raises(NotFound):
            agents.restore("a", "nothing")

    def test_a_checkpoint_of_another_agent_is_not_found(self) -> None:
        for id_ in ("a", "b"):
            self.store.agents.save(Agent(id=id_))
        made = self.store.agents.checkpoint("a", "mine")
        self.store.agents.checkpoint("b")

        for wanted in (made, made.id, "mine"):
            with raises(NotFound):
                self.store.agents.restore("b", wanted)
            assert self.store.agents.delete_checkpoint("b", wanted) == 0
        assert len(self.store.agents.checkpoints("a")) == 1


class LoadedCheckpointTests(AgentCases):
    """A checkpoint can be read without being restored."""

    def test_its_agent_and_conversations_are_as_they_were(self) -> None:
        self.busy_agent(owner="ann")
        self.store.conversations.archive("two")
        before = self.store.agents.load("a")
        listed = tuple(self.store.conversations.list(agent="a"))
        made = self.store.agents.checkpoint("a", "here")
        self.store.agents.save(Agent(id="a", name="changed"))
        self.store.conversations.update("one", title="changed")
        self.store.conversations.delete("two")
        self.store.conversations.create("three", agent="a")
        world = self.world()

        for wanted in (made, made.id, "here"):
            found = self.store.agents.load_checkpoint("a", wanted)

            assert (found.checkpoint, found.agent) == (made, before)
            assert found.conversations == listed
        assert found.agent.active_conversations == ("one",)
        assert self.world() == world

    def test_it_is_found_by_its_id_alone(self) -> None:
        agents = self.store.agents
        self.busy_agent()
        agents.save(Agent(id="b"))
        made = agents.checkpoint("a", "here", id="made")
        agents.checkpoint("b", id="both")
        agents.checkpoint("a", id="both")
        self.store.thread("x").save({}, id="made")
        self.store.thread("checkpoints:mine").save({}, id="mine")

        found = agents.get_checkpoint("made")

        assert found == made
        assert agents.load_checkpoint(found.agent_id, found).checkpoint == made
        with raises(NotFound, "ambiguous"):
            agents.get_checkpoint("both")
        for wrong in ("mad", "here", "mine", "none"):
            with raises(NotFound, "not_found"):
                agents.get_checkpoint(wrong)
        with raises(Unstorable):
            agents.get_checkpoint("")

    def test_the_messages_of_its_conversations_are_read_one_by_one(self) -> None:
        self.busy_agent(owner="ann")
        file = Attachment(content=LONG * 100)
        self.store.conversations.add("one", Message.user("file", attachments=[file]))
        before = {id_: self.store.conversations.load(id_) for id_ in ("one", "two")}
        made = self.store.agents.checkpoint("a")
        self.store.conversations.add("one", self.long())
        self.store.conversations.delete("two")

        for id_, talk in before.items():
            assert self.store.agents.load_conversation("a", made, id_) == talk
        with raises(NotFound):
            self.store.agents.load_conversation("a", made, "three")

    def test_a_transcript_in_it_can_be_repaired(self) -> None:
        self.store.agents.save(Agent(id="a"))
        call = ToolCall(id="1", name="pay", arguments={})
        asked = Message.assistant("", tool_calls=[call])
        self.store.conversations.create("c", agent="a", messages=[asked])
        self.store.agents.checkpoint("a", "here")

        talk = self.store.agents.load_conversation("a", "here", "c", repair="drop")

        assert (talk.message_count, len(talk.repairs)) == (0, 1)

    def test_its_state_has_what_it_holds_and_no_pins(self) -> None:
        self.busy_agent()
        states = {
            id_: self.store.conversations.thread(id_).load() for id_ in ("one", "two")
        }
        agent = self.store.agents.thread("a").load()
        made = self.store.agents.checkpoint("a")
        self.store.conversations.delete("two")
        self.store.agents.checkpoint("a")

        found = self.store.get(made.id)

        whole = {"agent": agent, "conversations": states}
        assert self.store.load(made.id) == self.store.load(found) == whole
        self.store.agents.delete_checkpoint("a", made)
        with raises(NotFound):
            self.store.load(found)

    def test_a_thread_with_the_name_of_checkpoints_is_any_thread(self) -> None:
        saved = self.store.thread("checkpoints:x").save({"pins": []})

        assert self.store.load(saved.id) == {"pins": []}

    def test_only_a_checkpoint_of_the_agent_itself_is_loaded(self) -> None:
        self.busy_agent()
        self.store.agents.save(Agent(id="b"))
        made = self.store.agents.checkpoint("a", "here")

        for agent, wanted in (("b", made), ("b", "here"), ("a", "x"), ("c", made)):
            with raises(NotFound):
                self.store.agents.load_checkpoint(agent, wanted)

    def test_a_checkpoint_is_read_although_its_agent_is_gone(self) -> None:
        self.busy_agent()
        before = self.store.agents.load("a")
        made = self.store.agents.checkpoint("a")
        self.store.delete("agent:a")

        assert self.store.agents.load_checkpoint("a", made).agent == before


class CheckpointRetentionTests(AgentCases):
    """Checkpoints are deleted one by one or by kind, and in no other way."""

    def facts(self) -> Statistics:
        """Everything that can be counted but the size of a file."""
        return msgspec.structs.replace(self.store.stats(), file_bytes=0)

    def test_deleting_a_checkpoint_frees_what_only_it_held(self) -> None:
        self.busy_agent()
        before = self.facts()
        first = self.store.agents.checkpoint("a")
        second = self.store.agents.checkpoint("a")

        assert self.store.agents.delete_checkpoint("a", first) == 1
        assert self.store.agents.delete_checkpoint("a", first) == 0
        assert self.store.agents.delete_checkpoint("a", second.id) == 1

        assert self.facts() == before
        assert self.store.verify()
        assert list(self.store.agents.checkpoints("a")) == []

    def test_what_was_deleted_is_freed_with_the_last_checkpoint(self) -> None:
        self.busy_agent()
        before = self.facts()
        self.store.conversations.create("late", agent="a", messages=[self.long()])
        self.store.conversations.thread("one").fork("conversation:fork")
        self.store.conversations.add("fork", self.long())
        made = self.store.agents.checkpoint("a")
        again = self.store.agents.checkpoint("a")
        self.store.conversations.delete("late", "fork")
        self.store.agents.delete_checkpoint("a", made)
        assert self.facts().stored_bytes > before.stored_bytes

        self.store.agents.delete_checkpoint("a", again)

        assert self.facts() == before
        assert self.store.verify()

    def test_what_another_checkpoint_holds_stays(self) -> None:
        self.busy_agent()
        made = [self.store.agents.checkpoint("a", f"{n}") for n in range(5)]
        worlds = [self.world()] * 5
        self.store.conversations.add("one", self.long())
        made.append(self.store.agents.checkpoint("a"))
        worlds.append(self.world())
        self.store.conversations.delete("one", "two")

        for gone in (4, 0, 2):
            assert self.store.agents.delete_checkpoint("a", made[gone]) == 1

        for n in (1, 3, 5, 1):
            self.store.agents.restore("a", made[n])
            assert self.world() == worlds[n]
        assert self.store.verify()

    def test_the_newest_checkpoint_can_be_deleted(self) -> None:
        self.busy_agent()
        old = self.store.agents.checkpoint("a", "old")
        world = self.world()
        self.store.conversations.add("one", self.long())
        new = self.store.agents.checkpoint("a", "new")

        assert self.store.agents.delete_checkpoint("a", new) == 1

        assert list(self.store.agents.checkpoints("a")) == [old]
        assert self.store.thread("checkpoints:a").get().id == old.id
        assert self.store.verify()
        self.store.agents.checkpoint("a", "newer")
        self.store.agents.restore("a", old)
        assert self.world() == world

    def test_the_beginning_of_an_id_deletes_nothing(self) -> None:
        self.store.agents.save(Agent(id="a"))
        first = self.store.agents.checkpoint("a", id="before")
        self.store.agents.checkpoint("a", id="before-2")

        assert self.store.agents.delete_checkpoint("a", "before") == 1
        assert self.store.agents.delete_checkpoint("a", "before") == 0
        assert self.store.agents.delete_checkpoint("a", first) == 0
        assert [c.id for c in self.store.agents.checkpoints("a")] == ["before-2"]

    def test_only_so_many_of_a_kind_are_kept(self) -> None:
        self.busy_agent()
        mine = [self.store.agents.checkpoint("a", f"mine {n}") for n in range(4)]
        world = self.world()
        for n in range(12):
            self.store.conversations.add("one", Message.user(f"{n}"))
            made = self.store.agents.checkpoint("a", kind="automatic", keep=3)
            assert self.store.agents.checkpoints("a", limit=1)[0] == made

        listed = self.store.agents.checkpoints("a")
        assert [c.kind for c in listed] == ["automatic"] * 3 + ["manual"] * 4
        assert [c.messages for c in listed[:3]] == [19, 18, 17]
        self.store.agents.restore("a", mine[0])
        assert self.world() == world
        self.store.agents.checkpoint("a", keep=1)
        kinds = [c.kind for c in self.store.agents.checkpoints("a")]
        assert kinds == ["manual", "recovery"] + ["automatic"] * 3
        assert self.store.verify()

    def test_none_cannot_be_kept(self) -> None:
        self.store.agents.save(Agent(id="a"))

        for wrong in untyped(0, -1, True, 1.5, "3"):
            with raises(Unstorable):
                self.store.agents.checkpoint("a", keep=wrong)
        assert list(self.store.agents.checkpoints("a")) == []

    def test_no_policy_takes_away_what_a_checkpoint_holds(self) -> None:
        every = ("agent", "conversation", "checkpoints", "pin", "thread")
        policies = [
            Retention(last=1),
            Retention(last=1, labelled=False, tagged=False, forks=False),
            Retention(within=NEVER, labelled=False, forks=False),
            Retention(thin=Thin(daily=1), labelled=False, forks=False),
            Retention(idle=HOUR),
            Retention(threads_per_owner=1),
            Retention(idle=HOUR, threads_per_owner=1, kinds=every, last=1, forks=False),
        ]
        self.busy_agent(owner="ann")
        worlds = [self.world()]
        made = [self.store.agents.checkpoint("a")]
        for policy in policies:
            self.store.conversations.add("one", self.long())
            worlds.append(self.world())
            made.append(self.store.agents.checkpoint("a"))
            self.store.conversations.add("two", self.long())
            self.clock.advance(2 * HOUR)

            self.store.prune(policy)

            assert self.store.verify()
            self.store.agents.restore("a", made[-1])
            assert self.world() == worlds[-1]
        for checkpoint, world in zip(made, worlds, strict=True):
            self.store.agents.restore("a", checkpoint)
            assert self.world() == world

    def test_deleting_threads_takes_nothing_from_a_checkpoint(self) -> None:
        self.busy_agent()
        world = self.world()
        made = self.store.agents.checkpoint("a")

        self.store.delete("agent:a")
        self.store.delete(kind="conversation")
        assert self.store.agents.find("a") is None

        self.store.agents.restore("a", made)
        assert self.world() == world

    def test_a_pinned_checkpoint_of_a_conversation_cannot_be_deleted(self) -> None:
        self.busy_agent()
        pinned = self.store.conversations.thread("one").get()
        world = self.world()
        made = self.store.agents.checkpoint("a")
        self.store.conversations.add("one", self.long())

        with raises(Conflict, "in_use"):
            self.store.conversations.thread("one").delete(pinned)
        self.store.conversations.thread("one").rewind("@~2", hard=True)

        self.store.agents.restore("a", made)
        assert self.world() == world
