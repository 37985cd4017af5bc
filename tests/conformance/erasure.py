"""Erasing owners and agents: what belongs to them, and what stays."""

from __future__ import annotations

import io
import json

from holdfast import Agent, Message
from holdfast.errors import Conflict, NotFound, Unstorable
from holdfast.testing import raises
from holdfast.testing.conformance.cases import Cases


class ErasedRecordTests(Cases):
    """All that belongs to an owner or an agent goes together."""

    def two_owners(self) -> None:
        """An agent that talks with two people, and a checkpoint of it."""
        self.store.agents.save(Agent(id="bot", name="Bot"))
        for owner in ("ann", "bob"):
            talks = self.store.conversations
            talks.create(owner, owner=owner, agent="bot")
            talks.add(owner, Message.user(f"I am {owner}"))
        self.store.agents.checkpoint("bot", "both")

    def test_an_agent_goes_on_without_an_erased_owner(self) -> None:
        self.two_owners()
        talk = self.store.conversations.load("ann")

        receipt = self.store.erase(owner="ann")
        assert receipt.threads == len(["the conversation", "its pin"])
        kept = self.store.agents.load_checkpoint("bot", "both")
        self.store.agents.restore("bot", "both")

        assert [talk.id for talk in kept.conversations] == ["bob"]
        [said] = self.store.conversations.load("bob").messages
        assert said.content == "I am bob"
        with raises(NotFound):
            self.store.conversations.load("ann")
        with raises(Conflict):
            self.store.conversations.save(talk)
        assert self.store.verify().problems == ()

    def test_an_agent_is_erased_with_everything_of_it(self) -> None:
        self.two_owners()
        self.store.thread("notes", agent="bot").record("k", 1)
        self.thread("other").save({"n": 1})

        self.store.erase(agent="bot")

        assert [thread.id for thread in self.store.threads(limit=None)] == ["other"]
        assert list(self.store.threads(kind="pin")) == []
        facts = self.store.stats()
        assert (facts.checkpoints, facts.journal_entries) == (1, 0)

    def test_a_fork_of_another_owner_stands_in_the_way(self) -> None:
        self.store.thread("a", owner=None).save({"n": 1})
        self.thread("a").fork("b")
        self.store.thread("free", owner="ann").save({"n": 1})
        self.store.thread("b").describe(owner="ann")

        with raises(Conflict, "in_use"):
            self.store.erase(thread="a")
        self.store.erase(owner="ann")

        assert [thread.id for thread in self.store.threads()] == ["a"]
        assert self.thread("a").load() == {"n": 1}

    def test_erasing_needs_one_subject(self) -> None:
        for wrong in ({}, {"owner": "a", "thread": "b"}, {"agent": ""}, {"owner": 1}):
            with raises(Unstorable):
                self.store.erase(**wrong)

        receipt = self.store.erase(owner="nobody")

        assert (receipt.threads, receipt.bytes) == (0, 0)

    def test_an_owner_is_given_everything_that_is_held(self) -> None:
        self.two_owners()
        notes = self.store.thread("notes", owner="ann", metadata={"for": "ann"})
        notes.record("k", {"v": 1})
        file = io.BytesIO()

        count = self.store.export_lines(file, owner="ann")

        lines = [json.loads(line) for line in file.getvalue().splitlines()]
        assert count == len(lines)
        assert {line["thread"] for line in lines} == {"conversation:ann", "notes"}
        about = {line["thread"]: line for line in lines if "about" in line}
        assert about["notes"]["about"]["metadata"] == {"for": "ann"}
        assert about["notes"]["journal"][0]["value"] == {"v": 1}
        archive = io.BytesIO()
        assert self.store.export_to(archive, owner="ann").threads
