"""The store of conversations: what the framework's own does, on every backend."""

import asyncio
import dataclasses

import pytest
from pydantic_ai import Agent, BinaryContent, DeferredToolRequests
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import CallDeferred, UserError
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

import holdfast
from holdfast.adapters.pydantic_ai import HoldfastConversationStore
from support.pydantic_agents import prompts_of, reply

agent = Agent(FunctionModel(reply))


async def talk(store, id_, *prompts, scope=None):
    """Load, run and save: one turn for each prompt."""
    for prompt in prompts:
        before = await store.load(id_) or Conversation(conversation_id=id_)
        await store.save(await agent.run(prompt, conversation=before), scope=scope)


async def refusal(awaitable):
    try:
        await awaitable
    except (ConversationConflict, LookupError, UserError) as error:
        return type(error)
    return None


class Contract:
    """What a caller sees of a store in a long use, without ids and times."""

    def __init__(self, store):
        self.store, self.seen = store, []

    async def look(self, *ids):
        for id_ in ids:
            loaded = await self.store.load(id_)
            self.seen.append(loaded and prompts_of(loaded.messages))
            self.seen.append(loaded and loaded.usage.requests)
        records = await self.store.list_conversations()
        self.seen += [(r.conversation_id, r.scope, r.forked_from) for r in records]
        self.seen.append([len(r.branches) for r in records])

    async def begin(self):
        await talk(self.store, "a/1", "one", "two", "three", scope="ann")
        await talk(self.store, "ö 2", "four")
        await self.look("a/1", "ö 2", "none")
        self.seen.append(await self.store.load("a/1", scope="bob"))

    async def read_parts(self):
        store = self.store
        last = await store.load("a/1", limit=3)
        self.seen.append(prompts_of(last.messages))
        self.seen.append((await store.load("a/1", limit=0)).messages)
        await store.save(await agent.run("after a window", conversation=last))
        await self.look("a/1")
        entries = await store.load_entries("a/1")
        self.seen.append([await store.read_entry(e.id) == e for e in entries])
        middle = await store.read_history(entries[3].id, limit=2)
        self.seen += [middle == entries[2:4], await store.read_history(None)]

    async def be_late(self):
        store = self.store
        stale = await store.load("a/1")
        await talk(store, "a/1", "five")
        late = await agent.run("late", conversation=stale)
        new = await agent.run("new", conversation=Conversation(conversation_id="a/1"))
        self.seen.append(await refusal(store.save(late)))
        self.seen.append(await refusal(store.save(new)))
        self.seen.append(await refusal(store.save(await store.load("a/1"), scope="x")))
        await self.look("a/1")

    async def fork(self):
        store = self.store
        for at in (0, 3, 4, None):
            id_ = f"fork at {at}"
            fork = await store.fork("a/1", at=at, new_conversation_id=id_)
            await self.look(id_)
            await store.save(await agent.run(f"in the {id_}", conversation=fork))
        await store.fork("fork at 3", new_conversation_id="other", scope="bob")
        taken = store.fork("a/1", new_conversation_id="other")
        self.seen.append(await refusal(taken))
        await self.look("fork at 0", "fork at 3", "fork at 4", "fork at None", "other")
        [bob] = await store.list_conversations(scope="bob")
        self.seen.append(bob.conversation_id)
        self.seen.append(len(await store.list_conversations(limit=2)))

    async def branch(self):
        store = self.store
        left = (await store.load_entries("a/1"))[-1].id
        for at in (3, 2, 0):
            revision = (await store.load("a/1")).revision
            kept = await store.branch("a/1", at=at, expected_revision=revision)
            await self.look("a/1")
            await store.save(await agent.run(f"branch at {at}", conversation=kept))
        revision = (await store.load("a/1")).revision
        wrong = store.branch("a/1", from_entry=left, expected_revision="old")
        self.seen.append(await refusal(wrong))
        await store.branch("a/1", from_entry=left, expected_revision=revision)
        await talk(store, "a/1", "back again")
        await self.look("a/1")

    async def rewrite(self):
        loaded = await self.store.load("a/1")
        short = dataclasses.replace(loaded, messages=loaded.messages[-2:])
        short.new_message_index = None
        await self.store.save(short)
        await self.look("a/1")

    async def delete(self):
        await self.store.delete("a/1", scope="bob")
        await self.look("a/1")
        await self.store.delete("a/1")
        await self.look("a/1", "fork at 3", "fork at None", "other")
        await talk(self.store, "a/1", "a new life")
        await self.look("a/1")

    async def go_through(self):
        await self.begin()
        await self.read_parts()
        await self.be_late()
        await self.fork()
        await self.branch()
        await self.rewrite()
        await self.delete()
        return self.seen


def test_it_does_what_the_framework_s_own_store_does(place):
    address, options = place

    async def main():
        async with HoldfastConversationStore(address, **options) as store:
            return await Contract(store).go_through()

    expected = asyncio.run(Contract(InMemoryConversationStore()).go_through())

    assert asyncio.run(main()) == expected


def test_another_process_finds_everything_and_files_and_deferred_calls(place):
    address, options = place
    if address == ":memory:":
        pytest.skip("is gone with its store")
    waiting = Agent(
        TestModel(), output_type=[str, DeferredToolRequests], name="waiting"
    )

    @waiting.tool_plain
    def ask_a_person(question: str) -> str:
        raise CallDeferred

    async def save():
        async with HoldfastConversationStore(address, **options) as store:
            picture = BinaryContent(data=b"\xff\x00", media_type="application/pdf")
            begun = Conversation(conversation_id="c")
            result = await waiting.run(["look", picture], conversation=begun)
            await store.save(result, scope="")
            return result.conversation

    async def load():
        async with HoldfastConversationStore(address, **options) as store:
            assert await store.load("c", scope="x") is None
            [record] = await store.list_conversations(scope="")
            return await store.load("c", scope=""), record

    saved = asyncio.run(save())
    loaded, record = asyncio.run(load())

    assert loaded.messages == saved.messages
    assert loaded.messages[0].parts[0].content[1].data == b"\xff\x00"
    assert loaded.deferred_tool_requests == saved.deferred_tool_requests
    assert loaded.deferred_tool_requests.calls
    assert record.scope == ""


def test_of_two_writers_that_race_none_is_lost(place):
    address, options = place
    store = holdfast.open(address, **options)

    async def work(name, turns):
        # On a store in memory both use the same one.
        where = store if address == ":memory:" else address
        given = {} if address == ":memory:" else options
        refused = 0
        async with HoldfastConversationStore(where, **given) as mine:
            for number in range(turns):
                while await refusal(talk(mine, "c", f"{name}{number}")):
                    refused += 1
        return refused

    async def main():
        refused = await asyncio.gather(work("a", 8), work("b", 8))
        final = await HoldfastConversationStore(store).load("c")
        return sum(refused), prompts_of(final.messages)

    with store:
        refused, prompts = asyncio.run(main())

    assert sorted(prompts) == sorted(f"{name}{n}" for name in "ab" for n in range(8))
    assert [p for p in prompts if p[0] == "a"] == [f"a{n}" for n in range(8)]
    assert refused


def test_a_fork_shares_its_entries_however_long_the_history_is(tmp_path):
    async def added(turns):
        with holdfast.open(tmp_path / f"{turns}.db") as store:
            mine = HoldfastConversationStore(store)
            await talk(mine, "c", *(f"{n} " + "x" * 2000 for n in range(turns)))
            before = store.stats()
            fork = await mine.fork("c")
            await mine.save(await agent.run("alt", conversation=fork))
            after = store.stats()
            return (
                after.checkpoints - before.checkpoints,
                after.segments - before.segments,
                after.stored_bytes - before.stored_bytes < 4000,
            )

    assert asyncio.run(added(3)) == asyncio.run(added(30)) == (2, 1, True)


def test_a_head_that_was_deleted_meanwhile_is_a_conflict():
    async def main():
        async with HoldfastConversationStore(":memory:") as store:
            await talk(store, "c", "one", "two")
            [record] = await store.list_conversations()
            await store.delete("c")
            fork = ConversationRecord(conversation_id="f", head_id=record.head_id)
            with pytest.raises(ConversationConflict):
                await store.write_record(fork, expected_revision=None)
            with pytest.raises(ConversationConflict):
                await store.delete_record("c", expected_revision=record.revision)
            with pytest.raises(LookupError, match="has no entry"):
                await store.read_entry(record.head_id)

    asyncio.run(main())


def test_entries_that_are_not_of_the_record_s_history_are_refused():
    async def main():
        async with HoldfastConversationStore(":memory:") as store:
            message = (await agent.run("hi")).all_messages()[0]
            lone = ConversationEntry(parent_id=None, message=message)
            record = ConversationRecord(conversation_id="c", head_id="another")
            with pytest.raises(UserError, match="end of the history"):
                await store.write_record(
                    record, new_entries=[lone], expected_revision=None
                )

    asyncio.run(main())


def test_deleting_the_last_conversation_leaves_no_entry(tmp_path):
    async def main(store):
        mine = HoldfastConversationStore(store)
        await talk(mine, "c", "secret one", "secret two")
        await mine.fork("c", at=2, new_conversation_id="f")
        await mine.delete("c")
        kept = await mine.load_entries("f")
        assert len(kept) == 2
        assert [await mine.read_entry(entry.id) for entry in kept] == kept
        await mine.fork("f", at=1, new_conversation_id="g")
        await mine.delete("f")
        assert await mine.load_entries("g") == kept[:1]
        await mine.delete("g")

    with holdfast.open(tmp_path / "a.db") as store:
        asyncio.run(main(store))
        assert store.stats().checkpoints == 0
        assert store.thread("pydantic_ai_entries").recorded_all() == {}
        assert store.verify().ok


def test_pruning_keeps_heads_branches_and_forks():
    async def main(store):
        mine = HoldfastConversationStore(store)
        await talk(mine, "c", "one", "two", "three")
        entries = await mine.load_entries("c")
        await mine.fork("c", at=4, new_conversation_id="f")
        loaded = await mine.load("c")
        await mine.branch("c", at=2, expected_revision=loaded.revision)
        await talk(mine, "c", "other", "more")
        store.prune(holdfast.Retention(last=1))
        revision = (await mine.load("c")).revision
        assert [await mine.read_entry(e.id) for e in entries] == entries
        await mine.branch("c", from_entry=entries[-1].id, expected_revision=revision)
        assert await mine.load_entries("c") == entries
        assert await mine.load_entries("f") == entries[:4]

    with holdfast.open(":memory:") as store:
        asyncio.run(main(store))


def test_holdfast_s_own_fork_rewind_and_undo_give_conversations():
    async def main(store):
        mine = HoldfastConversationStore(store)
        await talk(mine, "c", "one", "two", scope="ann")
        thread = store.thread("pydantic_ai:c")
        thread.fork("pydantic_ai:what-if", at="@~1")
        thread.rewind("@~1")
        await talk(mine, "c", "instead")
        await talk(mine, "what-if", "then")
        assert prompts_of((await mine.load("c")).messages) == ["one", "instead"]
        fork = await mine.load("what-if", scope="ann")
        assert prompts_of(fork.messages) == ["one", "then"]
        thread.undo()
        thread.undo()
        return prompts_of((await mine.load("c")).messages)

    with holdfast.open(":memory:") as store:
        assert asyncio.run(main(store)) == ["one", "two"]
        assert store.search("then")[0].thread == "pydantic_ai:what-if"


def test_what_this_version_cannot_read_is_told_as_such():
    async def main(store):
        mine = HoldfastConversationStore(store)
        await talk(mine, "c", "one")
        store.thread("pydantic_ai:c").amend(values={"format_version": 2})
        await mine.load("c")

    with (
        holdfast.open(":memory:") as store,
        pytest.raises(holdfast.FormatMismatch, match="the version that saved it"),
    ):
        asyncio.run(main(store))


def test_ids_and_scopes_may_be_any_text_and_never_collide():
    texts = ["", "%", "%25", "a b", "a%20b", "/", "é", "e\u0301", "a\0b", "x\x1fy"]

    async def main():
        async with HoldfastConversationStore(":memory:") as store:
            for text in texts:
                record = ConversationRecord(
                    conversation_id=text, head_id=None, scope=text
                )
                await store.write_record(record, expected_revision=None)
            with pytest.raises(holdfast.Unstorable, match="512 are allowed"):
                await talk(store, "é" * 300, "hi")
            found = [await store.list_conversations(scope=text) for text in texts]
            return [record.conversation_id for [record] in found]

    assert asyncio.run(main()) == texts
