"""Statistics: agents, conversations and documents are counted."""

from __future__ import annotations

from holdfast.messages import Message, ToolCall
from holdfast.retention import Retention
from holdfast.testing.conformance.cases import AgentCases


class StatisticsTests(AgentCases):
    """Agents, conversations and documents are counted too."""

    def counts(self) -> tuple[int, ...]:
        """Agents, conversations, messages, documents, checkpoints of agents."""
        facts = self.store.stats()
        return (
            facts.agents,
            facts.conversations,
            facts.messages,
            facts.documents,
            facts.agent_checkpoints,
        )

    def test_an_empty_store_has_nothing_to_count(self) -> None:
        assert self.counts() == (0, 0, 0, 0, 0)

    def test_what_is_there_is_counted(self) -> None:
        store = self.store
        self.busy_agent()
        assert self.counts() == (1, 2, 7, 0, 0)
        store.conversations.create("loose", messages=[Message.user("x")] * 3)
        store.documents.save("a", "x")
        store.documents.save("b/c", {"x": 1})
        store.thread("plain").save({"messages": [1, 2, 3]})
        assert self.counts() == (1, 3, 10, 2, 0)
        made = store.agents.checkpoint("a")
        store.agents.checkpoint("a", kind="automatic")
        assert self.counts() == (1, 3, 10, 2, 2)
        store.conversations.delete("one", "loose")
        store.documents.delete("a")
        assert self.counts() == (1, 1, 3, 1, 2)
        store.agents.restore("a", made)
        assert self.counts() == (1, 2, 7, 1, 3)
        store.prune(Retention(last=1, labelled=False, forks=False))
        assert self.counts() == (1, 2, 7, 1, 3)
        store.agents.delete("a")
        assert self.counts() == (0, 0, 0, 1, 0)

    def test_messages_are_counted_also_where_many_calls_are_open(self) -> None:
        calls = [ToolCall(id=f"call-{n:040}", name="look") for n in range(20)]
        asking = Message.assistant(tool_calls=calls)
        create = self.store.conversations.create
        create("open", messages=[Message.user("x"), asking])
        create("empty")
        create("gone", messages=[Message.user("x")])
        self.store.conversations.delete("gone")

        assert self.counts() == (0, 2, 2, 0, 0)

    def test_pins_are_not_listed_nor_counted_and_share_their_checkpoints(self) -> None:
        self.busy_agent()
        before = self.store.stats()

        self.store.agents.checkpoint("a")

        # The thread of the checkpoint; the agent and its conversations have pins.
        after = self.store.stats()
        assert after.threads - before.threads == 1
        assert after.threads == len(self.store.threads(limit=None))
        assert len(self.store.threads(limit=None, kind="pin")) == 3
        assert after.checkpoints - before.checkpoints == 1
        self.store.conversations.delete("one")
        assert self.store.stats().threads == after.threads - 1
        assert self.store.stats().checkpoints == after.checkpoints
