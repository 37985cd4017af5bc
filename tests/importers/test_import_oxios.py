"""Importing the folder of oxios."""

import os

import pytest

from holdfast.importers import import_from
from support.import_sources import (
    EXPECTED,
    FIXTURES,
    read,
    same,
    session_back,
    source,
    write,
)

OXIOS = FIXTURES / "oxios"
IDS = [f"0000060{n}-1a2b-4c3d-8e4f-00000000060{n}" for n in (1, 2, 3)]
SESSION = read(OXIOS / f"sessions/{IDS[0]}.json")


@pytest.fixture
def folder(tmp_path):
    return source("oxios", tmp_path)


def said(content, at, **more):
    return {"content": content, **more, "timestamp": f"2026-05-30T08:00:{at}Z"}


def texts(store, id_):
    messages = store.conversations.load(id_).messages
    return [(message.role, message.content) for message in messages]


def test_sessions_and_documents_are_counted(memory):
    report = import_from(memory, OXIOS)

    expected = EXPECTED["oxios"]
    assert report.format == "oxios"
    assert report.found.pop("sessions") == expected["sessions"]
    assert report.found == {k: len(v) for k, v in expected["categories"].items()}
    assert (report.imported.conversations, report.imported.documents) == (3, 4)
    assert report.is_complete


def test_the_sessions_can_be_rebuilt_from_the_store(memory):
    import_from(memory, OXIOS)

    for id_ in IDS:
        original = read(OXIOS / f"sessions/{id_}.json")
        assert same(session_back(memory.conversations.load(id_)), original)


def test_sessions_are_listed_as_they_were_last_updated(memory):
    import_from(memory, OXIOS)

    listed = [chat.id[:8] for chat in memory.conversations.list()]
    assert listed == EXPECTED["oxios"]["list_order_updated_desc"]


def test_a_session_belongs_to_its_user(memory):
    import_from(memory, OXIOS)

    mine = memory.conversations.list(owner="user-123")
    assert {chat.id for chat in mine} == {IDS[0], IDS[2]}
    chat = memory.conversations.load(IDS[0])
    assert chat.context["active_seed_id"] == "seed-7"
    assert chat.context["active_persona_id"] == "dev"
    of_project = memory.conversations.list(context={"project_ids": "proj-b"})
    assert [chat.id for chat in of_project] == [IDS[0]]
    assert chat.exchange_count == 2


def test_every_document_is_text_or_json_under_its_whole_name(memory):
    import_from(memory, OXIOS)

    for category, names in EXPECTED["oxios"]["categories"].items():
        listed = memory.documents.list(category)
        assert sorted(d.name for d in listed) == [f"{category}/{n}" for n in names]
    assert memory.documents.load("memory/notes.json").content == {"k": 1}
    for name in ("memory/notes.md", "memory/empty.md", "knowledge/rust/ownership.md"):
        assert memory.documents.load(name).content == (OXIOS / name).read_text()


def test_4_10_two_documents_that_differ_in_their_ending_both_live(memory):
    import_from(memory, OXIOS)

    assert len(memory.documents.list("memory")) == 3
    assert memory.documents.delete("memory/notes.md") == 1
    assert memory.documents.load("memory/notes.json").content == {"k": 1}
    assert len(memory.documents.list("memory")) == 2


def test_4_11_both_lists_are_merged_by_time_and_that_is_said(memory, folder):
    users = [said("u1", "00.000000001"), said("u2", "05"), said("u3", "05.000000002")]
    agents = [said("a1", "00.000000002"), said("a2", "05"), said("a3", "05.000000001")]
    session = SESSION | {"id": "s", "user_messages": users, "agent_responses": agents}
    write(folder / "sessions/s.json", session)

    report = import_from(memory, folder)

    merged = ["u1", "a1", "u2", "a2", "a3", "u3"]
    assert [text for _, text in texts(memory, "s")] == merged
    assert memory.conversations.thread("s").head.metadata["order_inferred"] is True
    assert any(n.startswith("order_inferred: session 's'") for n in report.inferred)
    assert same(session_back(memory.conversations.load("s")), session)


def test_4_11_a_clock_that_went_back_mixes_up_neither_list(memory, folder):
    users = [said("u1", "30"), said("u2", "10"), said("u3", "40")]
    agents = [said("a1", "31"), said("a2", "05")]
    session = SESSION | {"id": "s", "user_messages": users, "agent_responses": agents}
    write(folder / "sessions/s.json", session)

    import_from(memory, folder)

    assert same(session_back(memory.conversations.load("s")), session)


def test_4_11_where_only_one_spoke_nothing_is_inferred(memory):
    report = import_from(memory, OXIOS)

    assert "order_inferred" not in memory.conversations.thread(IDS[2]).head.metadata
    assert len(report.inferred) == 1


@pytest.mark.parametrize(
    ("given", "projects"),
    [
        ("proj-a,proj-b", ["proj-a", "proj-b"]),
        (["array-form"], ["array-form"]),
        ("one", ["one"]),
        ("", None),
        ([], None),
        (None, None),
    ],
)
def test_4_12_projects_are_found_as_text_and_as_a_list(memory, folder, given, projects):
    session = SESSION | {"id": "s", "metadata": {"project_ids": given}}
    write(folder / "sessions/s.json", session)

    import_from(memory, folder)

    chat = memory.conversations.load("s")
    assert chat.context.get("project_ids") == projects
    assert same(session_back(chat), session)


def test_fields_of_newer_versions_are_kept(memory, folder):
    newer = {k: v for k, v in SESSION.items() if not k.startswith("active")} | {
        "id": "s",
        "trajectory_steps": [{"tool": "grep", "n": 1}],
        "reasoning_records": [],
        "project_id": None,
        "parent_session_id": IDS[1],
    }
    write(folder / "sessions/s.json", newer)

    import_from(memory, folder)

    assert same(session_back(memory.conversations.load("s")), newer)


def test_what_interrupted_writes_left_over_is_named_and_not_read(memory, folder):
    left = [
        "sessions/x.123.5c6a.tmp",
        "sessions/x.json.123.5c6a.tmp",
        "memory/notes.123.5c6a.tmp",
    ]
    for name in left:
        (folder / name).write_text('{"id": ')

    report = import_from(memory, folder)

    assert sorted(f.path for f in report.ignored) == sorted(
        str(folder / name) for name in left
    )
    assert {f.reason for f in report.ignored} == {
        "was left over from an interrupted write"
    }
    assert report.is_complete


def test_files_of_no_category_or_kind_are_named(memory, folder):
    (folder / "readme.md").write_text("x")
    (folder / "memory/picture.png").write_bytes(b"\x89PNG")

    report = import_from(memory, folder)

    assert {os.path.basename(f.path) for f in report.ignored} == {
        "readme.md",
        "picture.png",
    }
    assert report.imported.documents == 4


def test_damage_is_named_and_hides_nothing_else(memory, folder):
    (folder / "sessions/torn.json").write_text('{"id": "x", "user')
    (folder / "memory/latin.md").write_bytes(b"caf\xe9")
    (folder / "memory/bad.json").write_text("{'k': 1}")
    for name, change in {
        "no-user": {"user_id": None},
        "no-time": {"updated_at": "yesterday"},
        "no-list": {"user_messages": {"0": "x"}},
        "no-text": {"agent_responses": [said(7, "00")]},
    }.items():
        write(folder / f"sessions/{name}.json", SESSION | {"id": name} | change)

    report = import_from(memory, folder)

    reasons = {os.path.basename(f.path): f.reason for f in report.damaged}
    assert reasons.keys() == {
        "torn.json",
        "latin.md",
        "bad.json",
        "no-user.json",
        "no-time.json",
        "no-list.json",
        "no-text.json",
    }
    assert reasons["no-user.json"] == "user_id is null, not text"
    assert reasons["no-text.json"] == (
        "agent_responses[0].content is a whole number, not text"
    )
    assert report.imported.conversations == 3
    assert report.imported.documents == 4


def test_a_session_that_grew_since_gets_a_second_checkpoint(memory, folder):
    import_from(memory, folder)
    longer = [*SESSION["user_messages"], said("third", "59")]
    write(folder / f"sessions/{IDS[0]}.json", SESSION | {"user_messages": longer})
    (folder / "memory/notes.md").write_text("changed")

    report = import_from(memory, folder)

    assert report.imported.checkpoints == 2
    assert memory.conversations.thread(IDS[0]).step == 2
    assert memory.documents.load("memory/notes.md").content == "changed"
    assert memory.documents.load("memory/notes.md").version == 2


@pytest.mark.parametrize("second", ["04", "06"])
def test_of_two_files_of_a_session_the_newest_is_what_it_is_now(memory, folder, second):
    times = {"now": "2026-05-30T08:01:05Z", "copy": f"2026-05-30T08:01:{second}Z"}
    places = {"now": folder / f"sessions/{IDS[0]}.json"}
    places["copy"] = folder / f"sessions/{IDS[0]} (copy).json"
    for name, at in times.items():
        said_then = {"user_messages": [said(name, "00")], "updated_at": at}
        write(places[name], SESSION | said_then)
    newest = max(times, key=times.get)

    report = import_from(memory, folder)

    assert texts(memory, IDS[0])[0] == ("user", newest)
    assert memory.conversations.thread(IDS[0]).step == 2
    [note] = [note for note in report.inferred if "in 2 files" in note]
    assert f"newest has it, {places[newest]}," in note
    assert report.is_complete
    assert import_from(memory, folder).imported.checkpoints == 0


def test_of_two_files_of_equal_age_the_one_with_the_name_of_the_session_counts(
    memory, folder
):
    old = {"user_messages": [said("copy", "00")]}
    for name in ("0", "z"):
        write(folder / f"sessions/{name}.json", SESSION | old)

    import_from(memory, folder)

    assert memory.conversations.load(IDS[0]).messages[0].content == "Hello"


def test_documents_have_the_times_of_their_files(memory, folder):
    os.utime(folder / "memory/notes.md", ns=(0, 1_234_567_890_123_456_789))

    import_from(memory, folder)

    updated = memory.documents.load("memory/notes.md").updated_at
    assert updated == 1_234_567_890_123_456


def test_another_users_session_is_not_written_over(memory, folder):
    memory.conversations.create(id=IDS[0], owner="somebody")

    report = import_from(memory, folder)

    assert memory.conversations.load(IDS[0]).owner == "somebody"
    assert memory.conversations.load(IDS[0]).message_count == 0
    assert IDS[0] in report.conflicts[0].reason
    assert report.imported.conversations == 2
