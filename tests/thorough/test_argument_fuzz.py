"""References, search queries and arguments of models with any text in them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import click
import msgspec

import holdfast
from holdfast import Agent
from holdfast.cli import main
from holdfast.tools import Toolset
from inner.cli import exit_status, locate, locate_fork, locate_range
from inner.mcp import read_resource
from inner.tools import Refusal
from inner.viewer import READINGS, query_of
from inner.views import Showing
from support import servers
from support.fuzz import fuzz

THREADS = ["trip", "fork", "conversation:c", "agent:planner", "document:notes/rust"]
MOST_CALLS = 300


def filled(address: str, **options: Any) -> holdfast.Store:
    """A store with a history, a fork, marks, a conversation, an agent, a document."""
    store = holdfast.open(address, **options)
    trip = store.thread("trip", owner="ann")
    for n in range(12):
        said = {"role": "user", "content": f"Ärger {n}: İstanbul ﬁnd it, 東京 🎉"}
        trip.append(messages=[said])
    trip.label("golden", "@3")
    trip.tag("day:1", "..", ref="@5")
    trip.fork("fork", "@~4").append(messages=[{"role": "user", "content": "fork"}])
    trip.rewind("@~2")
    store.agents.save(Agent(id="planner", name="P"))
    store.conversations.get_or_create("ann", "c", agent="planner")
    store.conversations.add("c", {"role": "user", "content": "Who & what | is !this?"})
    store.documents.save("notes/rust", "text")
    store.agents.checkpoint("planner", "first")
    return store


@cache
def opened(process: int, address: str) -> holdfast.Store:
    """The store of this process at an address: none is used across a fork."""
    del process
    return holdfast.open(address)


def text_of(chance: random.Random, pieces: list[str], most: int = 6) -> str:
    """Some pieces, one after the other; now and then a letter of any kind."""
    found = [chance.choice(pieces) for _ in range(chance.randint(1, most))]
    if chance.random() < 0.2:
        found.append(chr(chance.randrange(0x11_0000)))
    if chance.random() < 0.05:
        found *= chance.choice([20, 500, 20_000])
    return "".join(found)


# --- references -----------------------------------------------------------------------

REFERENCES = [
    *["@", "@", "@~", "^", "~", "{", "}", "@{", "..", "...", "label:", "tag:"],
    *THREADS,
    *["golden", "day:1", "0", "1", "3", "12", "99", "9" * 17, "9" * 40, "-1", "1e3"],
    *[
        "2h",
        "3 days",
        " ago",
        "5 minutes",
        "yesterday",
        "now",
        "upstream",
        "999999999w",
    ],
    *["10:00", "24:00", "99:99:99", "2026-11-15", "2026-11-15T10:00Z", "2026-W46-7"],
    *["0001-01-01T00:00+23:59", "9999-12-31T23:59:59-23:59", "+", "Z", "T", ":", "/"],
    *[
        "\0",
        "\ud800",
        "\n",
        "\x1f",
        "²",
        "٣",
        "é",
        "İ",
        " ",
        "",
        "%",
        "_",
        "*",
        "'",
        '"',
    ],
    *["conversation:", "agent:", "checkpoints:", "planner", "first", "x" * 513],
]

DOORS: list[Callable[[holdfast.Store, str, str], object]] = [
    lambda store, name, ref: store.thread(name).get(ref),
    lambda store, name, ref: store.thread(name).load(ref),
    lambda store, name, ref: store.thread(name).history(before=ref),
    lambda store, name, ref: store.thread(name).diff(ref, "@"),
    lambda store, name, ref: store.thread(name).blame("messages[0]", ref),
    lambda store, name, ref: store.thread(name).blame(ref),
    lambda store, name, ref: store.thread(name).effects(ref, since=ref),
    lambda store, name, ref: store.thread(name).elements("messages", ref=ref),
    lambda store, name, ref: store.thread(name).files(ref),
    lambda store, name, ref: store.thread(name).rewind(ref, expect="none"),
    lambda store, name, ref: store.thread(name).delete(expect=ref or None),
    lambda store, name, ref: store.thread(name).save({}, expect=ref, id="trip-1"),
    lambda store, name, ref: store.thread(name).find(label=ref, tag=ref),
    lambda store, name, ref: store.thread(ref).history(),
    lambda store, name, ref: store.get(ref),
    lambda store, name, ref: store.load(ref),
    lambda store, name, ref: store.conversations.load("c", ref),
    lambda store, name, ref: store.documents.load("notes/rust", ref),
    lambda store, name, ref: store.documents.history("notes/rust", before=ref),
    lambda store, name, ref: store.agents.load_checkpoint("planner", ref),
    lambda store, name, ref: store.agents.restore("planner", ref, dry_run=True),
    lambda store, name, ref: store.agents.load_conversation("planner", ref, "c"),
    lambda store, name, ref: store.stream("log").events(ref),
    lambda store, name, ref: locate(store, ref),
    lambda store, name, ref: locate_range(store, ref),
    lambda store, name, ref: locate_fork(store, ref),
    lambda store, name, ref: store.runner.run(read_resource, ref),
    lambda store, name, ref: store.runner.run(
        read_resource, f"holdfast://checkpoint/{ref}?part={ref}&cursor={ref}"
    ),
]

COMMANDS = [
    *["show", "log", "diff", "reflog", "journal", "effects", "status", "threads"],
    *["restore --dry-run", "rewind --dry-run", "fork x --dry-run", "search"],
    *["merge --dry-run", "prune --dry-run --last", "label golden", "blame messages"],
]


def one_reference(chance: random.Random, folder: Path) -> None:
    store = opened(os.getpid(), str(folder / "store.db"))
    name, reference = chance.choice(THREADS), text_of(chance, REFERENCES)
    kind = chance.random()
    if kind < 0.7:
        with contextlib.suppress(click.UsageError, Refusal):
            chance.choice(DOORS)(store, name, reference)
    elif kind < 0.85:
        reading = READINGS[chance.choice(sorted(READINGS))]
        fields = msgspec.structs.fields(reading.query)
        # The parameters of an address are valid text always.
        reference = reference.encode(errors="replace").decode()
        given = {
            chance.choice(fields).encode_name: [chance.choice([reference, name])]
            for _ in range(chance.randint(1, 3) if fields else 0)
        }
        with contextlib.suppress(msgspec.ValidationError, Refusal):
            query = query_of(reading, given)
            store.runner.run(reading.view, query, Showing())
    else:
        ask(chance, folder, reference)


def ask(chance: random.Random, folder: Path, reference: str) -> None:
    """A command with a reference, in this process; it must not fail inside."""
    command = chance.choice(COMMANDS).split(" ")
    # What the system passes on: without NUL, and bytes that are no text as surrogates.
    argument = re.sub("[\ud800-\udfff]", "\udcff", reference.replace("\0", ""))
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        status = main([*command, "--store", str(folder / "store.db"), "--", argument])
    assert status != exit_status.INTERNAL, (command, argument, said.getvalue())


def test_no_reference_ends_with_an_error_of_python(tmp_path):
    filled(str(tmp_path / "store.db")).close()

    assert fuzz(one_reference, tmp_path) > 0


# --- search queries -------------------------------------------------------------------

QUERIES = [
    *["Ärger", "İstanbul", "istanbul", "ﬁnd", "fi", "東京", "京", "🎉", "who", "fork"],
    *['"', '"', "'", "`", "*", "-", "+", "^", ":", "(", ")", "{", "}", "[", "]", "~"],
    *[
        "AND",
        "OR",
        "NOT",
        "NEAR(",
        "NEAR/2",
        "content:",
        "text:*",
        "rank",
        "&",
        "|",
        "!",
    ],
    *[
        "<->",
        "<2>",
        ":*",
        ":A",
        "%",
        "_",
        "\\",
        "\\\\",
        "/",
        "?",
        ";",
        "--",
        "/*",
        "$1",
    ],
    *["\0", "\ud800", "\udc00", "\u200b", "\u0301", "\u202e", "\ufeff", "ß", "ẞ", "K"],
    *[
        " ",
        "  ",
        "\t",
        "\n",
        "\x1f",
        "\x7f",
        "\u3000",
        "a",
        "ab",
        "abc",
        "x" * 500,
        "0",
    ],
]
OPTIONS: dict[str, list[Any]] = {
    "limit": [1, 2, None, 0, -1, 10**30],
    "after": [None, 0, 1, -1, 2**40, 2**62, 2**63, 2**64],
    "per": ["message", "conversation", "x"],
    "agent": [None, "planner", "", "\0"],
    "owner": [None, "ann", "\ud800"],
    "conversation": [None, "c", "\x1f", "x" * 600],
    "archived": [None, True, False],
}


def one_query(chance: random.Random, folder: Path) -> None:
    addresses = (folder / "stores").read_text().split()
    store = opened(os.getpid(), chance.choice(addresses))
    options = {
        name: chance.choice(values)
        for name, values in OPTIONS.items()
        if chance.random() < 0.15
    }
    query = text_of(chance, QUERIES, 8)
    search = chance.choice([store.search, store.conversations.search])
    page = search(query, **options)
    if page.cursor is not None:
        search(query, **options | {"after": page.cursor})


def test_no_query_ends_with_an_error_of_python(tmp_path):
    server = servers.shared(servers.NAMES[-1])
    addresses = [str(tmp_path / "store.db"), f"dir:{tmp_path}/folder", server]
    (tmp_path / "stores").write_text("\n".join(addresses))
    for address in addresses:
        filled(address).close()

    try:
        assert fuzz(one_query, tmp_path) > 0
    finally:
        servers.drop_schema(server, "holdfast")


# --- arguments of models --------------------------------------------------------------

SCALARS = [
    *[
        "null",
        "true",
        "false",
        "0",
        "-1",
        "1",
        "20",
        "500",
        "501",
        "1.5",
        "-0.0",
        "1e400",
    ],
    *[
        "9223372036854775808",
        "1" + "0" * 400,
        "1" * 5000,
        "NaN",
        "Infinity",
        "-",
        "{",
        "[",
    ],
    *['""', '"c"', '"planner"', '"ann"', '"trip"', '"notes/rust"', '"first"', '"user"'],
    *[
        '"\\u0000"',
        '"\\ud800"',
        '"\\ud83c\\udf89"',
        '"@~1"',
        '"label:golden"',
        '"text"',
    ],
    *['"conversation:c"', '"messages.0"', '"messages"', '"a.b.c"', '"\\u001f"', '"%"'],
    *[
        json.dumps("x" * 600),
        json.dumps("x" * 100_000),
        "[" * 200 + "]" * 200,
        "[]",
        "{}",
    ],
    *['{"role":"user","content":"Hi"}', '{"role":"tool","tool_call_id":1}', '{"":{}}'],
    *[
        '{"a":1,"a":2}',
        '{"\\ud800":1}',
        '{"role":"assistant","tool_calls":[{"id":"1"}]}',
    ],
]


def json_of(chance: random.Random, depth: int = 0) -> str:
    """A JSON text, or nearly one."""
    kind = chance.random()
    if depth > 3 or kind < 0.75:
        return chance.choice(SCALARS)
    count = chance.randint(0, 3)
    values = [json_of(chance, depth + 1) for _ in range(count)]
    if kind < 0.88:
        return f"[{','.join(values)}]"
    names = ["role", "content", "id", "x", "metadata", "attachments", "\\ud800"]
    pairs = [f'"{chance.choice(names)}":{value}' for value in values]
    return f"{{{','.join(pairs)}}}"


class Served:
    """A store in memory that is replaced by a new one after some calls."""

    def __init__(self) -> None:
        self.store, self.calls = filled(":memory:"), 0

    def toolset(self, **scope: str) -> Toolset:
        """The tools over the store."""
        self.calls += 1
        if self.calls > MOST_CALLS:
            self.store.close()
            self.__init__()
        return Toolset(self.store, threads=not scope, **scope)


@cache
def served(process: int) -> Served:
    del process
    return Served()


def one_call(chance: random.Random, folder: Path) -> None:
    del folder
    scope = chance.choice([{}, {}, {"agent": "planner"}, {"owner": "ann"}])
    toolset = served(os.getpid()).toolset(**scope)
    tool = chance.choice(toolset.tools)
    names = [*tool.arguments.__struct_fields__, "x"]
    pairs = [
        f'"{name}":{json_of(chance)}'
        for name in names
        if chance.random() < (0.05 if name == "x" else 0.6)
    ]
    text = f"{{{','.join(pairs)}}}"
    if chance.random() < 0.05:
        text = json_of(chance)
    given: Any = text
    if chance.random() < 0.5:
        with contextlib.suppress(ValueError, RecursionError):
            loaded = json.loads(text)
            given = loaded if isinstance(loaded, dict) else text
    result = toolset.call(tool.name, given)
    msgspec.json.encode(result)


def test_no_argument_of_a_model_ends_with_an_error_of_python(tmp_path):
    assert fuzz(one_call, tmp_path) > 0
