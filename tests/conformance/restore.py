"""Restoring an agent's checkpoints: everything is as it was, or nothing changed."""

from __future__ import annotations

from random import Random

from conformance.effects import PaymentCases
from holdfast.agents import Agent, AgentCheckpoint, RestorePreview
from holdfast.errors import Conflict, NotFound
from holdfast.messages import Message
from holdfast.testing import raises
from holdfast.testing.conformance.cases import AgentCases
from support.payments import asking_to_pay, pay


class RestoredRecordTests(AgentCases):
    """What a restore changes in the records of an agent, and what it leaves alone."""

    def test_restoring_what_is_there_changes_nothing(self) -> None:
        self.busy_agent()
        before = self.world()
        made = self.store.agents.checkpoint("a")
        moves = len(self.store.conversations.thread("one").moves())

        done = self.store.agents.restore("a", made)

        assert (done.rewound, done.revived, done.removed) == ((), (), ())
        assert not done.agent_changed
        assert self.world() == before
        assert len(self.store.conversations.thread("one").moves()) == moves

    def test_titles_tags_and_archives_come_back(self) -> None:
        talks = self.store.conversations
        self.busy_agent()
        talks.update("one", title="old", tags=["x"], archived=True, context={"k": 1})
        before = self.world()
        made = self.store.agents.checkpoint("a")
        talks.update("one", title="new", tags=[], archived=False, context={})

        self.store.agents.restore("a", made)

        assert self.world() == before
        assert self.store.agents.load("a").active_conversations == ("two",)

    def test_what_was_ahead_stays_in_the_history(self) -> None:
        talks = self.store.conversations
        self.busy_agent()
        made = self.store.agents.checkpoint("a")
        ahead = talks.add("one", Message.user("ahead"))

        self.store.agents.restore("a", made)
        talks.add("one", Message.user("another way"))

        assert talks.load("one", ahead).message_count == 5
        assert talks.load("one").message_count == 5
        assert talks.list(limit=1)[0].messages == 5
        assert talks.thread("one").undo().id != ahead.id

    def test_a_conversation_that_is_back_has_its_history(self) -> None:
        talks = self.store.conversations
        self.busy_agent()
        history = [c.id for c in talks.thread("one").history()]
        made = self.store.agents.checkpoint("a")
        talks.delete("one")

        self.store.agents.restore("a", made)

        assert [c.id for c in talks.thread("one").history()] == history
        assert [c.id for c in talks.thread("one").history(all=True)] == history
        assert talks.load("one", "@^").message_count == 3
        talks.thread("one").rewind("@^")
        talks.thread("one").rewind(history[0])
        talks.add("one", self.long())
        assert talks.load("one").message_count == 5
        assert talks.thread("one").fork("fork").step == 3

    def test_forks_are_restored_each_for_itself(self) -> None:
        talks = self.store.conversations
        self.busy_agent()
        talks.thread("one").fork("conversation:fork")
        talks.add("fork", self.long())
        before = self.world()
        made = self.store.agents.checkpoint("a")
        talks.delete("one")
        talks.add("fork", self.long())
        talks.thread("fork").fork("conversation:one")

        self.store.agents.restore("a", made)

        assert self.world() == before
        assert self.store.verify()

    def test_other_agents_are_left_alone(self) -> None:
        talks = self.store.conversations
        self.busy_agent()
        self.store.agents.save(Agent(id="b"))
        made = self.store.agents.checkpoint("a")
        talks.create("of b", agent="b", messages=[self.long()])
        talks.create("of nobody", messages=[self.long()])
        self.store.thread("mine", agent="a").save({"n": 1})
        before = self.world()

        self.store.agents.restore("a", made)

        assert self.world() == before
        assert self.store.thread("mine").load() == {"n": 1}

    def test_what_works_for_another_agent_now_is_not_taken_from_it(self) -> None:
        talks = self.store.conversations
        self.busy_agent()
        made = self.store.agents.checkpoint("a")
        talks.delete("one")
        talks.add("two", self.long())
        talks.create("one", agent="b", title="mine")
        before = self.world()

        with raises(Conflict, "foreign"):
            self.store.agents.restore("a", made)

        assert self.world() == before
        assert len(self.store.agents.checkpoints("a")) == 1
        talks.delete("one")
        self.store.agents.restore("a", made)
        assert talks.load("one").agent == "a"

    def test_a_deleted_checkpoint_cannot_be_restored(self) -> None:
        self.busy_agent()
        made = self.store.agents.checkpoint("a", "x")
        self.store.agents.delete_checkpoint("a", made)

        for wanted in (made, made.id, "x"):
            with raises(NotFound):
                self.store.agents.restore("a", wanted)

    def test_a_record_loaded_before_a_restore_is_not_saved_over_it(self) -> None:
        self.busy_agent()
        made = self.store.agents.checkpoint("a")
        self.store.conversations.add("one", self.long())
        agent = self.store.agents.save(self.store.agents.load("a"))
        talk = self.store.conversations.load("one")

        self.store.agents.restore("a", made)

        with raises(Conflict, "head_moved"):
            self.store.agents.save(agent)
        with raises(Conflict, "head_moved"):
            self.store.conversations.save(talk)


class RepeatedRestoreTests(AgentCases):
    """Checkpoints of an agent that are restored again and again."""

    def test_checkpoints_can_be_restored_in_any_order(self) -> None:
        talks, chance = self.store.conversations, Random(7)
        made: list[AgentCheckpoint] = []
        worlds: list[object] = []
        self.busy_agent()
        for n in range(8):
            talks.create(f"{n}", agent="a", messages=[self.long()])
            talks.delete(f"{n - 2}")
            talks.add("one", self.long())
            talks.archive("two", archived=n % 2 == 0)
            made.append(self.store.agents.checkpoint("a", f"{n}"))
            worlds.append(self.world())

        for _ in range(15):
            n = chance.randrange(8)
            self.store.agents.restore("a", made[n])
            assert self.world() == worlds[n]
            if chance.random() < 0.5:
                talks.add("one", self.long())
        assert self.store.verify()

    def test_checkpoints_can_be_restored_after_reopening(self) -> None:
        self.busy_agent()
        before = self.world()
        self.store.agents.checkpoint("a", "here")
        self.store.conversations.delete("one")
        self.store.agents.save(Agent(id="a"))

        store = self.reopen()
        done = store.agents.restore("a", "here")

        assert self.world() == before
        assert self.reopen().agents.restore("a", done.recovery).removed == ("one",)


class RestoredEffectTests(PaymentCases):
    """What a restore tells about the effects that it cannot take back."""

    def test_a_restore_tells_the_effects_it_leaves_behind(self) -> None:
        self.store.agents.save(Agent(id="a"))
        run = self.asked(agent="a")
        self.store.agents.checkpoint("a", "before")
        pay(run, "call-1", "a1")
        run.save()
        pay(self.run("later", agent="a"), "call-2", "a2", to="eve")

        done = self.store.agents.restore("a", "before")

        told = [(e.thread, e.arguments["ref"], e.status) for e in done.effects]
        assert told == [
            ("conversation:c", "a1", "completed"),
            ("conversation:later", "a2", "completed"),
        ]
        assert self.store.agents.restore("a", done.recovery).effects == ()

    def test_a_dry_run_answers_as_the_restore_does_and_changes_nothing(self) -> None:
        talks = self.store.conversations
        self.store.agents.save(Agent(id="a"))
        run = self.asked(agent="a")
        talks.create("gone", agent="a")
        self.store.agents.checkpoint("a", "before")
        pay(run, "call-1", "a1")
        run.save()
        run.add(Message.user("not in a checkpoint yet"))
        talks.delete("gone")
        talks.create("late", agent="a")
        self.store.agents.save(Agent(id="a", name="changed"))
        feed = self.store.changes().cursor

        preview = self.store.agents.restore("a", "before", dry_run=True)

        assert self.store.changes().cursor == feed
        done = self.store.agents.restore("a", "before")
        told = {name: getattr(done, name) for name in RestorePreview.__struct_fields__}
        assert preview == RestorePreview(**told)
        assert (preview.rewound, preview.revived, preview.removed) == (
            ("c",),
            ("gone",),
            ("late",),
        )
        assert (preview.agent_changed, preview.unsaved) == (True, 1)
        assert [effect.arguments["ref"] for effect in preview.effects] == ["a1"]

    def test_undoing_a_restore_brings_back_messages_that_no_checkpoint_has(
        self,
    ) -> None:
        self.store.agents.save(Agent(id="a"))
        unsaved = Message.user("not in a checkpoint yet")
        first = self.asked(id_="first", agent="a")
        self.store.agents.checkpoint("a", "before")
        pay(first, "call-1", "a1")
        later = self.asked(id_="later", agent="a")
        pay(later, "call-2", "a2", to="eve")
        for run in (first, later):
            run.add(unsaved)
        had = [len(run.messages) for run in (first, later)]

        done = self.store.agents.restore("a", "before")
        self.store.agents.restore("a", done.recovery)

        again = [self.run(id_, agent="a") for id_ in ("first", "later")]
        assert [len(run.messages) for run in again] == had
        assert self.store.conversations.thread("later").effects(left_behind=True) == []

    def test_a_conversation_without_a_checkpoint_is_left_alone(self) -> None:
        self.store.agents.save(Agent(id="a"))
        run = self.run(agent="a")
        run.add(Message.user("not in a checkpoint yet"))
        self.store.agents.checkpoint("a", "here")

        done = self.store.agents.restore("a", "here")

        assert (done.removed, done.unsaved) == ((), 0)
        assert len(self.run(agent="a").messages) == 1

    def test_a_dry_run_is_refused_where_the_restore_would_be(self) -> None:
        self.store.agents.save(Agent(id="a"))
        self.store.conversations.create("c", agent="a")
        made = self.store.agents.checkpoint("a")
        self.store.conversations.delete("c")
        self.store.conversations.create("c", agent="b")

        with raises(Conflict, "foreign"):
            self.store.agents.restore("a", made, dry_run=True)
        with raises(NotFound):
            self.store.agents.restore("a", "other", dry_run=True)

    def test_a_restore_tells_calls_whose_outcome_is_unknown_and_none_that_failed(
        self,
    ) -> None:
        self.store.agents.save(Agent(id="a"))
        run = self.asked(agent="a")
        self.store.agents.checkpoint("a", "before")
        run.llm_response(asking_to_pay("call-1", "a1"))
        with raises(ZeroDivisionError):
            run.call("call-1", lambda **_: 1 / 0)
        self.killed_paying(run, "call-2", "a2")
        run.save()

        done = self.store.agents.restore("a", "before")

        told = [(e.arguments["ref"], e.status) for e in done.effects]
        assert told == [("a2", "unknown")]

    def test_a_restore_that_moves_nothing_leaves_no_effect_behind(self) -> None:
        self.store.agents.save(Agent(id="a"))
        self.paid(agent="a")
        made = self.store.agents.checkpoint("a")

        assert self.store.agents.restore("a", made).effects == ()

    def test_undoing_a_restore_brings_back_what_a_removed_conversation_did(
        self,
    ) -> None:
        self.store.agents.save(Agent(id="a"))
        self.store.agents.checkpoint("a", "before")
        self.paid(agent="a")
        [made] = self.store.conversations.thread("c").effects()
        done = self.store.agents.restore("a", "before")

        self.store.agents.restore("a", done.recovery)
        run = self.run(agent="a")
        kept = self.store.conversations.thread("c").effects()
        run.resume(at="label:asked")

        assert [effect.place for effect in kept] == [made.place]
        assert pay(run, "call-2", "f9") == {"receipt": "a1"}
        assert self.references == ["a1"]
