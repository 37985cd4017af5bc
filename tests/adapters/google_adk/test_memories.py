"""What is remembered is found by its words, and stays forgotten once it is deleted."""

import asyncio

import pytest
from google.adk.memory.memory_entry import MemoryEntry

from adapters.google_adk.agents import HERE, ME, event, opened, said
from holdfast.adapters.google_adk import HoldfastMemoryService, HoldfastSessionService


@pytest.fixture
def everywhere(place):
    """Runs a coroutine function with services on each backend."""

    def run(body):
        async def within():
            async with opened(place) as store:
                sessions = HoldfastSessionService(store)
                await body(HoldfastMemoryService(store), sessions)

        asyncio.run(within())

    return run


async def talk(sessions, *said_there, session="s1", user="ann"):
    made = await sessions.create_session(
        app_name="app", user_id=user, session_id=session
    )
    for number, text in enumerate(said_there):
        author = "guide" if number % 2 else "user"
        await sessions.append_event(made, event(text, author=author, at=100.0 + number))
    return made


async def found(memories, query, **whose):
    response = await memories.search_memory(**{**ME, **whose}, query=query)
    return [entry.content.parts[0].text for entry in response.memories]


def test_a_session_is_remembered_when_it_is_added_and_each_time_anew(everywhere):
    async def body(memories, sessions):
        session = await talk(sessions, "my cat is Mila", "a fine name")
        assert await found(memories, "cat") == []
        await memories.add_session_to_memory(session)
        assert await found(memories, "What is my CAT called?") == ["my cat is Mila"]
        await sessions.append_event(session, event("and a dog named Bo"))
        for _ in range(2):
            await memories.add_session_to_memory(session)

        assert await found(memories, "dog cat") == [
            "and a dog named Bo",
            "my cat is Mila",
        ]
        assert await found(memories, "horse") == await found(memories, "") == []
        assert await found(memories, "cat", user_id="bob") == []
        assert await found(memories, "cat", app_name="other") == []
        await sessions.delete_session(**HERE)
        response = await memories.search_memory(**ME, query="Mila")
        [entry] = response.memories
        assert (entry.author, entry.timestamp) == ("user", "1970-01-01T00:01:40+00:00")

    everywhere(body)


def test_the_memories_with_the_most_words_come_first_and_ten_at_most(everywhere):
    async def body(memories, sessions):
        for number in range(3):
            texts = [f"the train {number} {n}" for n in range(7)]
            session = await talk(sessions, *texts, session=f"s{number}")
            await memories.add_session_to_memory(session)
        best = await talk(sessions, "a night train to Lyon", session="old")
        await memories.add_session_to_memory(best)

        told = await found(memories, "is there a train to Lyon at night?")
        assert told[0] == "a night train to Lyon"
        assert len(told) == 10

    everywhere(body)


def test_some_events_and_what_the_caller_writes_are_remembered_once(everywhere):
    async def body(memories, _):
        events = [event("likes tea", id="e1"), event("likes rain", id="e2")]
        for some in (events[:1], events):
            await memories.add_events_to_memory(**ME, events=some, session_id="s1")
        await memories.add_events_to_memory(**ME, events=[event("likes ink")])
        written = MemoryEntry(content=said("likes snow"), custom_metadata={"a": 1})
        await memories.add_memory(
            **ME, memories=[written], custom_metadata={"a": 0, "b": 2}
        )

        assert sorted(await found(memories, "likes")) == [
            "likes ink",
            "likes rain",
            "likes snow",
            "likes tea",
        ]
        response = await memories.search_memory(**ME, query="snow")
        assert response.memories[0].custom_metadata == {"a": 1, "b": 2}

    everywhere(body)


def test_a_deleted_memory_does_not_come_back_with_its_session(everywhere):
    async def body(memories, sessions):
        session = await talk(sessions, "my secret", "my name", session="a/b")
        await memories.add_session_to_memory(session)
        response = await memories.search_memory(**ME, query="secret")
        [entry] = response.memories
        for id_ in (entry.id, entry.id, "unknown", None):
            await memories.delete_memory(**ME, memory_id=id_)
        await memories.add_session_to_memory(session)

        assert await found(memories, "my") == ["my name"]

    everywhere(body)
