"""The viewer's API takes and answers the JSON that programs of users know today."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import msgspec
from asking import TOKEN, Asked, asked
from everything import FILES, night, open_everything
from payday import HOSTILE, NOTES, THREAD
from starlette.applications import Starlette
from starlette.routing import Route

import frozen
import holdfast
from frozen.shapes import sections
from inner.viewer import PATH, READINGS, STEERINGS, Viewer, ViewerOptions

FILE = "json/viewer.txt"
# What users chose: values that they saved, and names.
FREE = (
    "arguments",
    "metadata",
    "new",
    "old",
    "usage",
    "values.*",
    "blame gives.value",
    "children[].value",
    "effects[].result",
    "left_behind[].result",
)


def test_the_api_takes_and_gives_json_of_the_frozen_schemas(tmp_path):
    path = str(tmp_path / "agents.db")
    open_everything(path)
    given = defaultdict(list)

    with asked(path, write=True, opening=night("w-")) as viewer:
        for name, document in _answers(viewer):
            given[f"{name} gives"].append(document)

    takes = {f"GET {name}": reading.query for name, reading in READINGS.items()}
    takes |= {f"POST {name}": steering.body for name, steering in STEERINGS.items()}
    taken = [_parameters(name, kind) for name, kind in takes.items()]
    parts = sorted([*taken, *sections(given, FREE)])
    frozen.compare(FILE, "\n\n".join(parts) + "\n")


def _answers(viewer: Asked) -> Iterator[tuple[str, Any]]:
    def get(name, **parameters):
        return f"GET {name}", viewer.get(name, **parameters)

    yield get("store")
    yield get("threads", limit=1)
    _, listed = get("threads")
    yield "GET threads", listed
    for card in listed["threads"]:
        thread, head = card["id"], card["head"]
        for name in ("thread", "log", "minimap", "line", "charts", "effects"):
            yield get(name, thread=thread)
        _, log = get("log", thread=thread, scope="all", limit=100)
        yield "GET log", log
        root = log["rows"][-1]["id"]
        for row in log["rows"]:
            yield get("checkpoint", id=row["id"])
        for name in ("messages", "state", "context", "files"):
            yield get(name, checkpoint=head)
        yield get("diff", **{"from": root, "to": head})
        yield get("diff", **{"from": head, "to": root})
        yield get("rewind", thread=thread, to=root)
        yield get("compare", at=[root, head])
    yield from _parts(viewer)
    yield from _changes(viewer)
    yield "GET live", _event(viewer)
    for name, parameters in (("thread", {"thread": "none"}), ("live", {"after": "x"})):
        query = urlencode(parameters)
        yield "an error", viewer.send("GET", f"{PATH}{name}?{query}").document


def _parts(viewer: Asked) -> Iterator[tuple[str, Any]]:
    """What is shown of a part of a state, of a message and of files, and searches."""

    def head(thread):
        return viewer.get("thread", thread=thread)["head"]

    asked_for = [
        ("state", {"checkpoint": head(NOTES), "path": "deep", "depth": 0}),
        ("part", {"checkpoint": head(NOTES), "path": "draft"}),
        ("part", {"checkpoint": head(THREAD), "position": 0}),
        ("part", {"checkpoint": head(THREAD), "position": 1, "call": "first"}),
        ("part", {"checkpoint": head(f"x {HOSTILE}"), "position": 1, "part": 0}),
        ("part", {"checkpoint": head(FILES), "file": 0}),
        ("file", {"checkpoint": head(FILES), "path": "a.py"}),
        ("file", {"checkpoint": head(FILES), "position": 1}),
        ("blame", {"checkpoint": head(NOTES), "path": "attempts"}),
        ("blame", {"checkpoint": head(NOTES), "path": "items"}),
        ("search", {"q": "pay"}),
        ("search", {"q": "pay", "limit": 1}),
    ]
    for name, parameters in asked_for:
        yield f"GET {name}", viewer.get(name, **parameters)


def _changes(viewer: Asked) -> Iterator[tuple[str, Any]]:
    """The answer to each change; the last is refused."""
    rows = viewer.get("log", thread=NOTES)["rows"]
    head, root = rows[0]["id"], rows[-1]["id"]
    asked_for = [
        ("fork", {"from": head, "thread": "forked", "set": {"attempts": 3}}),
        ("label", {"checkpoint": head, "label": "good"}),
        ("tag", {"checkpoint": head, "add": ["a", "b"], "remove": []}),
        ("rewind", {"thread": NOTES, "to": root, "expect": head}),
        ("resolve", {"thread": THREAD, "call": "fifth", "result": {"paid": True}}),
    ]
    for name, body in asked_for:
        yield f"POST {name}", viewer.post(name, **body).document
    yield "an error", viewer.post("rewind", **dict(asked_for)["rewind"]).document


def _event(viewer: Asked) -> Any:
    """The first event of the stream."""
    connection = http.client.HTTPConnection(viewer.host, viewer.port, timeout=60)
    with contextlib.closing(connection):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        connection.request("GET", f"{PATH}live?after=0", headers=headers)
        for line in connection.getresponse():
            if line.startswith(b"data: "):
                return json.loads(line.removeprefix(b"data: "))
    raise AssertionError("the stream ended")


def _parameters(name: str, taken: type[msgspec.Struct]) -> str:
    """A section with a line for each parameter of a route, or key of a body."""
    [definition] = msgspec.json.schema(taken)["$defs"].values()
    required = definition.get("required", [])
    lines = [
        f"{key}{'' if key in required else '?'}: {json.dumps(kind)}"
        for key, kind in sorted(definition["properties"].items())
    ]
    return "\n".join([f"# {name} takes", *lines])


def test_every_route_of_the_api_has_a_schema():
    text = (frozen.HERE / FILE).read_text()
    options = ViewerOptions(token=TOKEN, write=True)

    application = Viewer(holdfast.open_async(":memory:"), options).application()

    assert isinstance(application, Starlette)
    routes = [route for route in application.routes if isinstance(route, Route)]
    served = {route.path for route in routes if route.path.startswith(PATH)}
    served.remove(f"{PATH}export")  # answers with a page
    answers = re.findall("^# (?:GET|POST) (.*) gives$", text, re.MULTILINE)
    assert served == {PATH + name for name in answers}
