"""A database that the SDK's own sessions made is imported and gone on with."""

import asyncio

from agents import Agent, Runner, SQLiteSession
from agents.extensions.memory import AdvancedSQLiteSession
from agents.tracing import set_tracing_disabled

import holdfast
from adapters.openai_agents.scripted_model import Scripted, calls, says
from adapters.openai_agents.sessions import user
from adapters.openai_agents.test_runs import weather
from holdfast.adapters.openai_agents import HoldfastSession
from holdfast.cli import main as command_line

set_tracing_disabled(True)


def guide(*outputs):
    return Agent(name="guide", model=Scripted(*outputs), tools=[weather])


async def talked(session):
    asked = calls("weather", '{"city": "Lyon"}')
    agent = guide(asked, says("Sunny"), says("Bye"))
    await Runner.run(agent, "How is Lyon?", session=session)
    await Runner.run(agent, "Thanks", session=session)
    return await session.get_items()


def test_a_session_of_the_sdk_goes_on_in_holdfast(place, tmp_path):
    url, options = place
    path = tmp_path / "sessions.db"

    async def main():
        items = await talked(SQLiteSession("trip-7", path))
        with holdfast.open(url, **options) as store:
            report = store.import_from(path)
            session = HoldfastSession("trip-7", store)
            assert await session.get_items() == items
            assert len(await session.history()) == 2
            await Runner.run(guide(says("Hello")), "And now?", session=session)
            assert len(await session.get_items()) == len(items) + 2
            assert store.import_from(path).already_there == report.imported
            await session.rewind("@~3")
            assert await session.get_items() == items[:4]

    asyncio.run(main())


def test_every_branch_of_an_advanced_session_is_a_conversation(tmp_path, memory):
    path = tmp_path / "sessions.db"

    async def main():
        session = AdvancedSQLiteSession(
            session_id="a", db_path=path, create_tables=True
        )
        for turn in ("one", "two"):
            await session.add_items([user(turn), {"role": "assistant", "content": "k"}])
        await session.create_branch_from_turn(2, "other")
        await session.add_items([user("else")])
        memory.import_from(path)
        for id_, branch in (("a", "main"), ("a@other", "other")):
            await session.switch_to_branch(branch)
            found = memory.conversations.load(id_).messages
            assert found == await session.get_items()

    asyncio.run(main())


def test_the_command_line_recognises_the_file_and_shows_its_messages(tmp_path, capsys):
    path, store = tmp_path / "sessions.db", str(tmp_path / "agents.db")
    asyncio.run(talked(SQLiteSession("trip-7", path)))

    def said(*arguments):
        assert command_line([*arguments, "--store", store]) == 0
        return capsys.readouterr().out

    assert "imported 1 conversation, 2 checkpoints, 6 messages" in said(
        "import", str(path)
    )
    assert "assistant: Bye" in said("log", "conversation:trip-7")
    assert "trip-7" in said("search", "bye")
