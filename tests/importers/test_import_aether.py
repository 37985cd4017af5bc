"""Importing the folder of AetherShell."""

import hashlib
import json
import random

import pytest

from holdfast.importers import import_from
from support.import_sources import (
    EXPECTED,
    FIXTURES,
    agent_back,
    compact,
    conversation_back,
    fingerprint,
    read,
    same,
    sealed,
    source,
    write,
)

AETHER = FIXTURES / "aethershell"
CHAT, EMPTY = (f"0000040{n}-1a2b-4c3d-8e4f-00000000040{n}" for n in (1, 2))
MANUAL, AUTOMATIC = (f"0000050{n}-1a2b-4c3d-8e4f-00000000050{n}" for n in (1, 2))
AGENT = read(AETHER / "agents/agent-1.json")
CONVERSATION = read(AETHER / f"conversations/{CHAT}.json")
CHECKPOINT = read(AETHER / f"checkpoints/{MANUAL}.json")


@pytest.fixture
def folder(tmp_path):
    return source("aether", tmp_path)


def made(id_, *, at, counter=None, conversations=None, **fields):
    """A checkpoint of agent-1 with another state."""
    state = AGENT if counter is None else with_counter(counter)
    chats = [CONVERSATION] if conversations is None else conversations
    held = {"agent_state": state, "conversations": chats}
    return sealed(CHECKPOINT | {"id": id_, "created_at": at} | held | fields)


def with_counter(counter):
    changed = AGENT["custom_state"] | {"counter": {"Int": counter}}
    return AGENT | {"custom_state": changed, "modified_at": AGENT["modified_at"] + 1}


def test_everything_is_counted(memory):
    report = import_from(memory, AETHER)

    assert report.format == "aether"
    assert report.found == EXPECTED["aethershell"]
    assert report.imported.agents == 2
    assert report.imported.conversations == 2
    assert report.imported.agent_checkpoints == 2
    assert report.imported.messages == 5
    assert report.is_complete


def test_agents_and_conversations_can_be_rebuilt_from_the_store(memory):
    import_from(memory, AETHER)

    for id_ in ("agent-1", "agent-2"):
        original = read(AETHER / f"agents/{id_}.json")
        assert same(agent_back(memory.agents.load(id_)), original)
    for id_ in (CHAT, EMPTY):
        original = read(AETHER / f"conversations/{id_}.json")
        assert same(conversation_back(memory.conversations.load(id_)), original)


def test_values_are_plain_where_json_has_them_and_wrapped_where_not(memory):
    import_from(memory, AETHER)

    state = memory.agents.load("agent-1").state
    assert state["counter"] == 42
    assert state["list"] == [1, 2.5, None, []]
    assert state["rec"] == {"a": False, "b": {}}
    assert state["home"] == {"$aether": {"Uri": "file:///home/l"}}
    assert state["err"] == {"$aether": {"Error": "boom"}}


def test_messages_are_ours(memory):
    import_from(memory, AETHER)

    chat = memory.conversations.load(CHAT)
    assert [m.role for m in chat.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert [a.kind for a in chat.messages[1].attachments] == ["image", "code"]
    grep, stat = chat.messages[2].tool_calls
    assert grep.arguments == {"pattern": "TODO", "max": 10}
    assert (stat.status, stat.result) == ("completed", "ok")
    assert chat.messages[3].tool_call_id == "call-1"
    assert memory.conversations.list(tag="超长").items[0].open_calls == ()
    assert "archived" not in memory.conversations.thread(CHAT).load()


def test_attachments_go_to_models_as_what_they_are(memory, folder):
    chat = json.loads(json.dumps(CONVERSATION))
    files = [
        ("Image", "a.png", "image/png", "iVBORw0KGgo="),
        ("File", "a.pdf", "application/pdf", "JVBERg=="),
        ("Code", "a.rs", "application/rust", "Zm4gbWFpbigpIHt9"),
        ("Code", "b.rs", "text/x-rust", "main"),
        ("File", "c", "text/plain", "not base64"),
    ]
    chat["messages"][1]["attachments"] = [
        {"id": f"{n}", "attachment_type": kind, "name": name, "mime_type": mime_type}
        | {"content": content, "url": None, "size": None}
        for n, (kind, name, mime_type, content) in enumerate(files)
    ]
    write(folder / f"conversations/{CHAT}.json", chat)

    import_from(memory, folder)

    found = memory.conversations.load(CHAT)
    assert same(conversation_back(found), chat)
    kinds = [a.kind for a in found.messages[1].attachments]
    assert kinds == ["image", "file", "code", "code", "file"]
    asked, *sent = found.to_openai()[1]["content"]
    assert asked["text"].startswith("Find the TODOs")
    image = {"url": "data:image/png;base64,iVBORw0KGgo="}
    pdf = {"file_data": "data:application/pdf;base64,JVBERg==", "filename": "a.pdf"}
    assert sent == [
        {"type": "image_url", "image_url": image},
        {"type": "file", "file": pdf},
        {"type": "text", "text": "a.rs\nfn main() {}"},
        {"type": "text", "text": "b.rs\nmain"},
        {"type": "text", "text": "c\nnot base64"},
    ]
    shown = found.to_anthropic()["messages"][0]["content"]
    assert [part["type"] for part in shown] == [
        "text",
        "image",
        "document",
        *["text"] * 3,
    ]


def test_a_folder_of_agents_alone_is_known_by_its_files(memory, tmp_path):
    write(tmp_path / "agents/agent-1.json", AGENT)
    (tmp_path / "agents/notes.txt").write_text("not JSON")

    report = import_from(memory, tmp_path)

    assert (report.format, report.imported.agents) == ("aether", 1)
    assert [f.reason for f in report.ignored] == ["is not a file of AetherShell's"]
    assert report.is_complete


def test_every_type_of_a_checkpoint_is_one_of_our_kinds(memory, folder):
    types = ("Automatic", "PreOperation", "Recovery")
    for n, type_ in enumerate(types):
        write(
            folder / f"checkpoints/{n}.json", made(type_, at=n, checkpoint_type=type_)
        )
    write(folder / "notes/agent-1.json", AGENT)

    report = import_from(memory, folder)

    found = memory.agents.checkpoints("agent-1")
    kinds = ["manual", "recovery", "pre_operation", "automatic"]
    assert [checkpoint.kind for checkpoint in found] == kinds
    assert [f.path for f in report.ignored] == [str(folder / "notes/agent-1.json")]


def test_a_role_that_is_no_name_is_damage(memory, folder):
    chat = json.loads(json.dumps(CONVERSATION))
    chat["messages"][0]["role"] = 5
    write(folder / f"conversations/{CHAT}.json", chat)

    report = import_from(memory, folder)

    [damage] = report.damaged
    assert damage.reason == "role is not the name of a variant"


def test_an_archived_conversation_stays_archived(memory, folder):
    path = folder / f"conversations/{EMPTY}.json"
    archived = write(path, read(path) | {"archived": True})

    import_from(memory, folder)

    assert [chat.id for chat in memory.conversations.list(archived=True)] == [EMPTY]
    assert same(conversation_back(memory.conversations.load(EMPTY)), read(archived))


def test_of_two_files_of_an_agent_the_newest_is_what_it_is_now(memory, folder):
    old = with_counter(7) | {"modified_at": AGENT["modified_at"] - 1}
    write(folder / "agents/agent-1.json.bak.json", old)

    report = import_from(memory, folder)

    assert same(agent_back(memory.agents.load("agent-1")), AGENT)
    assert any("agent-1.json, and" in note for note in report.inferred)


def test_a_checkpoint_of_an_agent_says_what_it_was(memory):
    import_from(memory, AETHER)

    [manual] = memory.agents.checkpoints("agent-1")
    [automatic] = memory.agents.checkpoints("agent-2")
    assert (manual.id, manual.name, manual.kind) == (
        MANUAL,
        "Test checkpoint",
        "manual",
    )
    assert (manual.conversations, manual.messages) == (2, 5)
    assert manual.created_at == 1_768_000_200_000_000
    assert (automatic.kind, automatic.description) == (
        "automatic",
        "Automatic checkpoint",
    )
    kept = manual.metadata["imported"]["extra"]
    assert kept == {k: CHECKPOINT[k] for k in ("size_bytes", "checksum")}


def test_a_checkpoint_copies_nothing(memory):
    import_from(memory, AETHER)

    assert memory.agents.thread("agent-1").step == 1
    assert memory.conversations.thread(CHAT).step == 1


def test_restoring_a_checkpoint_gives_back_exactly_what_it_embeds(memory, folder):
    earlier = made(
        "early", at=1, counter=7, conversations=CHECKPOINT["conversations"][:1]
    )
    write(folder / "checkpoints/early.json", earlier)
    import_from(memory, folder)

    memory.agents.restore("agent-1", "early")

    assert same(agent_back(memory.agents.load("agent-1")), with_counter(7))
    assert [c.id for c in memory.conversations.list(agent="agent-1")] == [CHAT]
    restored = conversation_back(memory.conversations.load(CHAT))
    assert same(restored, CONVERSATION)

    memory.agents.restore("agent-1", MANUAL)

    assert same(agent_back(memory.agents.load("agent-1")), AGENT)
    assert len(memory.conversations.list(agent="agent-1")) == 2


def test_checkpoints_stand_in_the_order_of_their_times(memory, folder):
    for name, at in (("b", 30), ("c", 10), ("a", 20), ("d", 20)):
        write(folder / f"checkpoints/{name}.json", made(name, at=at, counter=at))

    report = import_from(memory, folder)

    found = [c.id for c in memory.agents.checkpoints("agent-1")]
    assert found == [MANUAL, "b", "d", "a", "c"]
    assert any("same second" in note for note in report.inferred)


def test_what_is_there_now_comes_after_what_checkpoints_embed(memory, folder):
    late = made("late", at=2_000_000_000, counter=7)
    write(folder / "checkpoints/late.json", late)

    import_from(memory, folder)

    assert memory.agents.load("agent-1").state["counter"] == 42
    assert memory.agents.thread("agent-1").step == 3


def test_a_state_that_came_back_is_saved_again(memory, folder):
    for n, counter in enumerate((1, 2, 1)):
        write(folder / f"checkpoints/{n}.json", made(str(n), at=n, counter=counter))
    (folder / f"checkpoints/{MANUAL}.json").unlink()

    import_from(memory, folder)
    again = import_from(memory, folder)

    thread = memory.agents.thread("agent-1")
    counters = [thread.load(c)["state"]["counter"] for c in thread.history()]
    assert counters == [42, 1, 2, 1]
    assert again.imported.checkpoints == 0
    assert again.already_there.agent_checkpoints == 4


# --- damage ---------------------------------------------------------------------------


def test_a_checkpoint_that_was_tampered_with_is_reported_and_left_out(memory, folder):
    path = folder / f"checkpoints/{MANUAL}.json"
    path.write_text(path.read_text().replace("file:///tmp/a.rs", "file://scratch/a.rs"))
    before = fingerprint(folder)

    report = import_from(memory, folder)

    [damage] = report.damaged
    assert damage.path == str(path)
    assert "checksum" in damage.reason
    assert memory.agents.checkpoints("agent-1").items == ()
    assert report.imported.conversations == 2
    assert fingerprint(folder) == before


def test_3_1_a_checkpoint_of_a_thousand_keys_in_any_order_is_verified(memory, folder):
    numbers = list(range(1000))
    random.Random(3).shuffle(numbers)
    keys = [f'"key {n}":{{"Int":{n}}}' for n in numbers]
    # Numbers as two versions of the source write them, and we would not.
    keys += ['"old":{"Float":1e16}', '"new":{"Float":1e+16}', '"one":{"Float":1.0}']
    values = "{" + ",".join(keys) + "}"
    state = compact(AGENT).replace(compact(AGENT["custom_state"]), values)
    (folder / "checkpoints/many.json").write_text(sealed_text("many", state))

    report = import_from(memory, folder)

    assert report.is_complete
    memory.agents.restore("agent-1", "many")
    restored = memory.agents.load("agent-1").state
    assert list(restored)[:1000] == [f"key {n}" for n in numbers]
    assert restored["old"] == restored["new"] == 1e16


def sealed_text(id_, agent_state):
    """The text of a checkpoint, indented, that holds the text of an agent."""
    summed = f"[{agent_state},[]]".encode()
    about = {"size_bytes": len(summed), "checksum": hashlib.md5(summed).hexdigest()}
    rest = CHECKPOINT | {"id": id_, "conversations": [], "agent_state": None} | about
    indented = (
        agent_state.replace("{", "{\n  ").replace(":{", ": {").replace(",", ",\n")
    )
    return json.dumps(rest, indent=2).replace(
        '"agent_state": null', f'"agent_state": {indented}'
    )


def test_3_10_an_id_that_ends_like_a_file_is_whole(memory, folder):
    write(folder / "agents/foo.json.json", AGENT | {"agent_id": "foo.json"})
    write(folder / "conversations/a.b.json.json", CONVERSATION | {"id": "a.b.json"})

    import_from(memory, folder)

    assert memory.agents.load("foo.json").name == "Test Agent"
    assert memory.conversations.load("a.b.json").message_count == 5
    assert memory.agents.find("foo") is None


def test_3_12_a_number_that_was_none_does_not_brick_an_agent(memory, folder):
    nan = AGENT | {"custom_state": {"nan": {"Float": None}, "n": {"Int": 1}}}
    write(folder / "agents/agent-1.json", nan)

    import_from(memory, folder)

    assert memory.agents.load("agent-1").state == {
        "nan": {"$aether": {"Float": None}},
        "n": 1,
    }
    assert same(agent_back(memory.agents.load("agent-1")), nan)


def test_3_17_variants_of_other_versions_are_kept(memory, folder):
    newer = json.loads(
        json.dumps(CONVERSATION)
        .replace('"System"', '"Developer"')
        .replace('"Tool"', '{"Function": {"v": 2}}')
        .replace('"Pending"', '"Cancelled"')
        .replace('"Image"', '"Hologram"')
        .replace('"Code"', '"code"')
        .replace('"Completed"', '"completed"')
    )
    newer["messages"][0]["later"] = {"field": None}
    write(folder / f"conversations/{CHAT}.json", newer)
    odd = AGENT | {"custom_state": {"x": {"Quaternion": [1, 2]}, "y": {"Int": 1.5}}}
    write(folder / "agents/agent-1.json", odd)
    write(
        folder / "checkpoints/odd.json",
        made("odd", at=5, conversations=[newer], checkpoint_type="Scheduled"),
    )

    report = import_from(memory, folder)

    assert report.is_complete
    chat = memory.conversations.load(CHAT)
    assert [m.role for m in chat.messages][::3] == ["Developer", "Function"]
    assert same(conversation_back(chat), newer)
    assert same(agent_back(memory.agents.load("agent-1")), odd)
    [kept] = [c for c in memory.agents.checkpoints("agent-1") if c.id == "odd"]
    assert kept.metadata["imported"]["checkpoint_type"] == "Scheduled"


def test_a_record_that_looks_wrapped_is_not_mistaken(memory, folder):
    values = {
        "a": {"Record": {"$aether": {"Int": 1}}},
        "b": {"Record": {"x": {"Record": {"$aether": {"Str": "y"}}}}},
        "$aether": {"Str": "at the top"},
        "c": {"Int": 1, "Str": "two"},
        "d": [1],
        "e": {"Bool": 1},
    }
    odd = AGENT | {"custom_state": values, "config": values}
    write(folder / "agents/agent-1.json", odd)

    import_from(memory, folder)

    assert same(agent_back(memory.agents.load("agent-1")), odd)


# --- what belongs together ------------------------------------------------------------


def test_a_conversation_without_an_agent_is_imported_too(memory, folder):
    for file in folder.glob("agents/*"):
        file.unlink()
    for file in folder.glob("checkpoints/*"):
        file.unlink()

    report = import_from(memory, folder)

    assert report.imported.conversations == 2
    assert memory.agents.list().items == ()
    assert memory.conversations.load(CHAT).agent == "agent-1"


def test_what_is_left_only_in_checkpoints_is_imported_and_named(memory, folder):
    (folder / "agents/agent-1.json").unlink()
    (folder / f"conversations/{CHAT}.json").unlink()

    report = import_from(memory, folder)

    assert memory.agents.load("agent-1").name == "Test Agent"
    assert memory.conversations.load(CHAT).message_count == 5
    assert len([n for n in report.inferred if "no file of its own" in n]) == 2


def test_large_attachments_are_stored_once(memory, folder):
    (folder / f"checkpoints/{MANUAL}.json").unlink()
    big = "QUJD" * 5000
    chats = []
    for n in range(5):
        chat = json.loads(json.dumps(CONVERSATION))
        chat["messages"][1]["attachments"][0]["content"] = big
        chat["messages"][4]["content"] += str(n)
        chats.append(chat)
        write(
            folder / f"checkpoints/{n}.json", made(str(n), at=n, conversations=[chat])
        )
    write(folder / f"conversations/{CHAT}.json", chats[-1])

    import_from(memory, folder)

    assert same(conversation_back(memory.conversations.load(CHAT)), chats[-1])
    assert memory.stats().stored_bytes < 2 * len(big)


def test_two_checkpoints_of_one_id_are_told_apart(memory, folder):
    write(folder / "checkpoints/copy.json", CHECKPOINT)
    write(folder / "checkpoints/other.json", made(MANUAL, at=2**31, counter=9))

    report = import_from(memory, folder)

    assert [f.path[-9:] for f in report.ignored] == ["copy.json"]
    assert [f.path[-10:] for f in report.damaged] == ["other.json"]
    assert len(memory.agents.checkpoints("agent-1")) == 1
    assert memory.agents.thread("agent-1").step == 1


def test_a_checkpoint_of_another_agent_than_it_says_is_damaged(memory, folder):
    write(folder / "checkpoints/x.json", made("x", at=9, agent_id="agent-2"))

    report = import_from(memory, folder)

    assert "holds another" in report.damaged[0].reason


def test_checkpoints_made_since_are_not_moved_by_a_second_import(memory, folder):
    import_from(memory, folder)
    memory.agents.checkpoint("agent-1", "mine")
    write(folder / "checkpoints/new.json", made("new", at=2_000_000_000))

    report = import_from(memory, folder)

    assert memory.agents.checkpoints("agent-1").items[0].name == "mine"
    assert "since" in report.conflicts[0].reason
    assert report.already_there.agent_checkpoints == 2


def test_a_checkpoint_that_changed_in_the_source_is_a_conflict(memory, folder):
    import_from(memory, folder)
    write(folder / f"checkpoints/{MANUAL}.json", made(MANUAL, at=9, counter=9))

    report = import_from(memory, folder)

    assert any("other content" in found.reason for found in report.conflicts)
    [kept] = memory.agents.checkpoints("agent-1")
    assert kept.created_at == 1_768_000_200_000_000


def test_checkpoints_of_a_deleted_agent_are_not_brought_back(memory, folder):
    import_from(memory, folder)
    memory.agents.delete("agent-1")

    report = import_from(memory, folder)

    assert memory.agents.find("agent-1") is None
    assert memory.agents.checkpoints("agent-1").items == ()
    assert any(MANUAL in found.reason for found in report.conflicts)


def test_ids_and_names_that_cannot_be_ours_are_kept(memory, folder):
    write(folder / "checkpoints/odd.json", made("@odd", at=2**31, name=""))

    report = import_from(memory, folder)

    newest = memory.agents.checkpoints("agent-1").items[0]
    kept = newest.metadata["imported"]
    assert (kept["id"], kept["name"], newest.name) == ("@odd", "", "manual")
    assert report.is_complete
    assert import_from(memory, folder).already_there.agent_checkpoints == 3


def test_a_length_that_is_wrong_is_reported_and_the_checkpoint_taken(memory, folder):
    wrong = CHECKPOINT | {"size_bytes": 1}
    write(folder / f"checkpoints/{MANUAL}.json", wrong)

    report = import_from(memory, folder)

    assert any("not as long as it says" in note for note in report.inferred)
    assert report.imported.agent_checkpoints == 2


def test_a_conversation_held_twice_is_damage(memory, folder):
    twice = made("x", at=9, conversations=[CONVERSATION, CONVERSATION])
    write(folder / "checkpoints/x.json", twice)

    report = import_from(memory, folder)

    assert "twice" in report.damaged[0].reason
