"""Importing the database of the OpenAI Agents SDK's sessions.

That the SDK itself makes such databases, tests/adapters/openai_agents/test_import says.
"""

import apsw

from holdfast.importers import Counts, import_from
from support.import_sources import (
    second,
    sessions_database,
    source,
    spoken_sessions,
)

TRIP = [item for item, _ in spoken_sessions()["trip/7"]]


def messages(store, id_="trip/7"):
    return store.conversations.load(id_).messages


def change(path, *statements):
    db = apsw.Connection(str(path))
    for statement in statements:
        db.execute(statement).fetchall()
    db.close()


def moments(checkpoints):
    return [f"{c.time:%Y-%m-%d %H:%M:%S}" for c in checkpoints]


def test_a_session_becomes_a_conversation_with_its_items_unchanged(memory, tmp_path):
    report = import_from(memory, source("openai-agents", tmp_path))

    assert report.found == {"sessions": 2, "items": 5}
    assert report.imported == Counts(conversations=2, checkpoints=3, messages=5)
    assert messages(memory) == TRIP
    assert messages(memory, "empty") == []


def test_every_turn_is_a_checkpoint_with_the_times_of_its_items(memory, tmp_path):
    import_from(memory, source("openai-agents", tmp_path))

    thread = memory.conversations.thread("trip/7")
    turns = list(thread.history(order="oldest"))
    assert [len(thread.load(turn)["messages"]) for turn in turns] == [4, 5]
    assert moments(turns) == [second(4), second(60)]
    assert turns[0].metadata["imported"]["times"] == [
        [f"{second(1)}Z", 1],
        [f"{second(2)}Z", 2],
        [f"{second(4)}Z", 1],
    ]
    begun = memory.conversations.load("trip/7").created_at
    assert begun == turns[0].saved_at - 4_000_000


def test_a_session_that_went_on_is_continued_and_one_that_was_cut_is_replaced(
    memory, tmp_path
):
    path = source("openai-agents", tmp_path)
    import_from(memory, path)
    more = "insert into agent_messages (session_id, message_data) values"
    change(path, f"""{more} ('trip/7', '{{"role": "assistant"}}')""")

    assert import_from(memory, path).imported.checkpoints == 1
    assert messages(memory) == [*TRIP, {"role": "assistant"}]

    change(path, "delete from agent_messages where id > 4")
    assert import_from(memory, path).is_complete
    assert messages(memory) == [*TRIP, {"role": "assistant"}]
    change(path, f"""{more} ('trip/7', '{{"role": "user"}}')""")
    import_from(memory, path)
    assert messages(memory) == [*TRIP[:4], {"role": "user"}]
    edited = """set message_data = '{"role": "user", "content": "?"}'"""
    newest = "(select max(id) from agent_messages)"
    change(path, f"update agent_messages {edited} where id = {newest}")
    import_from(memory, path)
    assert messages(memory) == [*TRIP[:4], {"role": "user", "content": "?"}]


def test_tables_may_have_other_names_and_there_may_be_several(memory, tmp_path):
    path = source("openai-agents", tmp_path)
    change(
        path,
        'alter table agent_sessions rename to "my ""sessions"',
        'alter table agent_messages rename to "my messages"',
        "drop index idx_agent_messages_session_id",
        "create table notes (session_id text references agent_sessions)",
    )
    sessions_database(path, {"other": [({"role": "user"}, 1)], "empty": []})

    report = import_from(memory, path)

    assert messages(memory) == TRIP
    assert messages(memory, "other") == [{"role": "user"}]
    [finding] = report.damaged
    assert finding.reason == (
        "session 'empty': is there a second time, in \"my messages\"; that one was left"
        " out"
    )


def test_an_item_that_cannot_be_read_is_named_and_the_others_are_kept(memory, tmp_path):
    path = source("openai-agents", tmp_path)
    change(
        path,
        "update agent_messages set message_data = '{' where id = 2",
        "update agent_messages set message_data = '[]' where id = 3",
        "update agent_messages set message_data = x'7bff7d' where id = 4",
        "update agent_messages set created_at = null where id = 5",
        "insert into agent_messages values (6, 'lost', '{}', '2026-05-30 09:00:00')",
        "insert into agent_sessions (session_id, created_at) values ('bad', 'today')",
    )

    report = import_from(memory, path)

    assert messages(memory) == [TRIP[0], TRIP[4]]
    assert messages(memory, "lost") == [{}]
    parts = [finding.reason.split(":")[0] for finding in report.damaged]
    items = [f"session 'trip/7', item {number}" for number in (2, 3, 4)]
    assert sorted(parts) == ["session 'bad'", *items]
    assert "the time of the item before" in report.inferred[0]
