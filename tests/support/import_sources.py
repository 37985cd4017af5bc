"""Sources of every foreign format for the tests, and the way back out of a store.

The functions that rebuild a source know its format from its description and not from
the importers, so that what they give can be compared with the files.
"""

import base64
import hashlib
import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw

from support.folders import FIXTURES

EXPECTED = json.loads((FIXTURES / "expected.json").read_text())

SOURCES = {
    "aether": "aethershell",
    "cortex": "cortex",
    "echo": "echo_state/checkpoints.json",
    "oxios": "oxios",
    "smooth": "smooth/files",
}
FORMATS = [*SOURCES, "smooth-sqlite", "openai-agents"]

SCHEMA = """
    create table checkpoints (
        id text primary key, agent_id text not null, iteration integer not null,
        conversation blob not null, metadata text default '{}',
        created_at integer not null);
    create index idx_checkpoints_agent on checkpoints (agent_id, created_at desc);
"""

SESSIONS = """
    create table agent_sessions (
        session_id text primary key, created_at timestamp default current_timestamp,
        updated_at timestamp default current_timestamp);
    create table agent_messages (
        id integer primary key autoincrement, session_id text not null,
        message_data text not null, created_at timestamp default current_timestamp,
        foreign key (session_id) references agent_sessions (session_id)
            on delete cascade);
    create index idx_agent_messages_session_id on agent_messages (session_id, id);
"""


# --- sources --------------------------------------------------------------------------


def source(format_, folder):
    """A copy of a format's sample in a folder of its own."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if format_ == "smooth-sqlite":
        return smooth_database(folder / "checkpoints.db", smooth_records())
    if format_ == "openai-agents":
        return sessions_database(folder / "sessions.db", spoken_sessions())
    original = FIXTURES / SOURCES[format_]
    if original.is_dir():
        return Path(shutil.copytree(original, folder / original.name))
    return Path(shutil.copy2(original, folder / original.name))


def smooth_records():
    """The records of the sample of smooth, by the time they were made."""
    files = (FIXTURES / "smooth/files").rglob("*.json")
    return sorted(map(read, files), key=lambda record: record["created_at"])


def smooth_database(path, records):
    """A database as smooth makes it."""
    db = apsw.Connection(str(path))
    db.execute("pragma journal_mode = wal").fetchall()
    db.execute(SCHEMA).fetchall()
    with db:
        for record in records:
            add_row(db, record)
    db.close()
    return path


def add_row(db, record):
    """A checkpoint as smooth saves it: whole seconds, compact JSON."""
    created_at = datetime.fromisoformat(record["created_at"][:19] + "+00:00")
    db.execute(
        "insert or replace into checkpoints values (?, ?, ?, ?, ?, ?)",
        (
            record["id"],
            record["agent_id"],
            record["iteration"],
            compact(record["conversation"]).encode(),
            compact(record["metadata"]),
            int(created_at.timestamp()),
        ),
    )


def spoken_sessions():
    """Sessions of the OpenAI Agents SDK: items and the second at which each came."""
    call = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"}
    answer = {"type": "function_call_output", "call_id": "c1", "output": "3"}
    return {
        "trip/7": [
            ({"role": "user", "content": "add up"}, 1),
            (call, 2),
            (answer, 2),
            ({"role": "assistant", "content": [{"type": "output_text"}]}, 4),
            ({"role": "user", "content": "grüße"}, 60),
        ],
        "empty": [],
    }


def sessions_database(path, sessions):
    """A database as the SQLiteSession of the OpenAI Agents SDK makes it."""
    db = apsw.Connection(str(path))
    db.execute("pragma journal_mode = wal").fetchall()
    db.execute(SESSIONS).fetchall()
    with db:
        for id_, items in sessions.items():
            values = (id_, second(0), second(max([0, *(at for _, at in items)])))
            db.execute("insert into agent_sessions values (?, ?, ?)", values)
            for item, at in items:
                values = id_, json.dumps(item), second(at)
                db.execute(
                    "insert into agent_messages (session_id, message_data, created_at)"
                    " values (?, ?, ?)",
                    values,
                )
    db.close()
    return path


def second(at):
    """A time of the year 2026 as SQLite's current_timestamp writes it."""
    return f"2026-05-30 08:{at // 60:02}:{at % 60:02}"


def read(path):
    return json.loads(Path(path).read_text())


def write(path, value):
    """A JSON file as the sources write it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2))
    return path


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def sealed(checkpoint):
    """A checkpoint of AetherShell with the checksum of what it holds."""
    summed = compact([checkpoint["agent_state"], checkpoint["conversations"]]).encode()
    checksum = hashlib.md5(summed).hexdigest()
    return {**checkpoint, "size_bytes": len(summed), "checksum": checksum}


def fingerprint(path):
    """Everything about a file or a folder that an import must not change."""
    path = Path(path)
    found = {}
    for item in [path.parent, path, *sorted(path.rglob("*"))]:
        about = os.lstat(item)
        is_file = item.is_file() and not item.is_symlink()
        content = hashlib.sha256(item.read_bytes()).hexdigest() if is_file else ""
        found[str(item)] = about.st_mtime_ns, about.st_mode, about.st_size, content
    return found


# --- and back -------------------------------------------------------------------------


def moment(microseconds, kept=None):
    """A time as Rust's chrono writes it, or the text that was kept of it."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    exact = "microseconds" if microseconds % 1000 else "milliseconds"
    digits = exact if microseconds % 1_000_000 else "seconds"
    text = at.replace(tzinfo=None).isoformat(timespec=digits)
    return kept or f"{text}Z"


def imported(store, format_):
    """The threads of a store that came from a format."""
    threads = store.threads(limit=None)
    stamps = [(thread, thread.metadata.get("imported", {})) for thread in threads]
    return [(t, stamp) for t, stamp in stamps if stamp.get("format") == format_]


def saves(store, thread):
    """A thread's checkpoints oldest first: state, own metadata, what was kept."""
    for checkpoint in store.thread(thread.id).history(None, order="oldest"):
        metadata = checkpoint.metadata
        stamp = metadata.pop("imported")
        if "displaced" in stamp:
            metadata["imported"] = stamp["displaced"]
        yield checkpoint, store.thread(thread.id).load(checkpoint), metadata, stamp


def echo_back(store):
    """The object of an echo file, without sessions that have no checkpoints."""
    sessions = {}
    for thread, origin in imported(store, "echo"):
        sessions[origin["id"]] = [
            {
                "session_id": origin["id"],
                "checkpoint_id": stamp.get("id", checkpoint.id),
                "messages": state["messages"],
                "parent_checkpoint_id": None,
                "summary": state.get("summary"),
                "metadata": state.get("metadata"),
                "created_at": checkpoint.saved_at // 1_000_000,
                **stamp.get("extra", {}),
            }
            for checkpoint, state, _, stamp in saves(store, thread)
        ]
    return sessions


def cortex_back(store):
    """All checkpoints of cortex that a store holds."""
    return [
        {
            "metadata": {
                "id": stamp.get("id", checkpoint.id),
                "thread_id": origin["id"],
                "created_at": checkpoint.saved_at // 1_000_000,
                "parent_id": stamp["parent"],
                "step": stamp["step"],
                "label": stamp.get("label", checkpoint.label),
                "tags": stamp.get("tags", list(checkpoint.tags)),
                "state_size": stamp["state_size"],
                "custom": metadata,
                **stamp.get("extra", {}).get("metadata", {}),
            },
            "state": state,
        }
        for thread, origin in imported(store, "cortex")
        for checkpoint, state, metadata, stamp in saves(store, thread)
    ]


def smooth_back(store, format_="smooth"):
    """All checkpoints of smooth that a store holds, by id."""
    found = {}
    for thread, origin in imported(store, format_):
        for checkpoint, state, metadata, stamp in saves(store, thread):
            id_ = stamp.get("id", checkpoint.id)
            budget = {"max_context_tokens": state.get("budget")}
            found[id_] = {
                "id": id_,
                "agent_id": origin["agent"],
                "conversation": {
                    "id": origin["id"],
                    "messages": state["messages"],
                    **(budget if "budget" in state else {}),
                    **state.get("smooth", {}),
                },
                "iteration": state["run"]["iteration"],
                "metadata": metadata,
                "created_at": moment(checkpoint.saved_at, stamp.get("created_at")),
                **stamp.get("extra", {}),
            }
    return found


def value_back(value):
    """A `Value` of AetherShell."""
    kinds = {bool: "Bool", int: "Int", float: "Float", str: "Str"}
    if value is None:
        return "Null"
    if type(value) in kinds:
        return {kinds[type(value)]: value}
    if isinstance(value, list):
        return {"Array": [value_back(element) for element in value]}
    if list(value) == ["$aether"]:
        return value["$aether"]
    return {"Record": values_back(value)}


def values_back(values):
    return {name: value_back(value) for name, value in values.items()}


def agent_back(agent):
    """The file of an agent."""
    return {
        "agent_id": agent.id,
        "name": agent.name,
        "agent_type": agent.type,
        "system_prompt": agent.system_prompt,
        "capabilities": agent.capabilities,
        "config": values_back(agent.config),
        "custom_state": values_back(agent.state),
        "created_at": agent.created_at // 1_000_000,
        "modified_at": agent.updated_at // 1_000_000,
        "metadata": agent.metadata,
        **agent.extra.get("aether", {}),
    }


def conversation_back(conversation):
    """The file of a conversation."""
    return {
        "id": conversation.id,
        "agent_id": conversation.agent,
        "title": conversation.title,
        "messages": [message_back(message) for message in conversation.messages],
        "metadata": conversation.metadata,
        "created_at": conversation.created_at // 1_000_000,
        "last_message_at": conversation.updated_at // 1_000_000,
        "archived": conversation.archived,
        "tags": conversation.tags,
        **conversation.extra.get("aether", {}),
    }


def message_back(message):
    return {
        "id": message.id,
        "role": pascal(message.role, "system user assistant tool"),
        "content": message.content,
        "timestamp": message.at // 1_000_000,
        "tokens": message.tokens,
        "attachments": [attachment_back(part) for part in message.attachments],
        "tool_calls": [call_back(call) for call in message.tool_calls],
        "parent_id": message.parent,
        "metadata": message.metadata,
        **message.extra.get("aether", {}),
    }


def attachment_back(attachment):
    return {
        "id": attachment.id,
        "attachment_type": pascal(attachment.kind, "image audio video file code"),
        "name": attachment.name,
        "mime_type": attachment.mime_type,
        "content": in_base64(attachment.content),
        "url": attachment.url,
        "size": attachment.size,
        **attachment.extra.get("aether", {}),
    }


def in_base64(content):
    return base64.b64encode(content).decode() if isinstance(content, bytes) else content


def call_back(call):
    return {
        "id": call.id,
        "name": call.name,
        "arguments": values_back(call.arguments),
        "result": call.result,
        "status": pascal(call.status, "pending running completed failed"),
        **call.extra.get("aether", {}),
    }


def pascal(word, known):
    """A variant of an enum; one that is not known is in its own words already."""
    parts = word.split("_")
    return "".join(map(str.capitalize, parts)) if word in known.split() else word


def session_back(conversation):
    """The file of a session of oxios."""
    kept = dict(conversation.extra.get("oxios", {}))
    created, updated = kept.pop("created_at", None), kept.pop("updated_at", None)
    active = ("active_seed_id", "active_persona_id")
    return {
        "id": conversation.id,
        "user_id": conversation.owner,
        "user_messages": said_by("user", conversation),
        "agent_responses": said_by("assistant", conversation),
        **{n: conversation.context[n] for n in active if n in conversation.context},
        "created_at": moment(conversation.created_at, created),
        "updated_at": moment(conversation.updated_at, updated),
        "metadata": conversation.metadata,
        **kept,
    }


def said_by(role, conversation):
    found = []
    for message in conversation.messages:
        if message.role == role:
            rest = dict(message.metadata)
            timestamp = moment(message.at, rest.pop("timestamp", None))
            found.append({"content": message.content, **rest, "timestamp": timestamp})
    return found


def same(a, b):
    """Whether two JSON values are equal, 1 and 1.0 and true told apart."""
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)
