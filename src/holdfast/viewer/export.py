"""Threads as one HTML file that opens anywhere: the same page, with its answers inside.

The page asks an exported file in the same words as a server, so the file holds answers
by question. The documents of the first picture are always in it; of single checkpoints,
the newest are, until the file is large. An answer that is equal to another one is only
named.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Hashable, Mapping, Sequence
from hashlib import sha256
from html import escape
from typing import Any, cast
from urllib.parse import quote_plus

from holdfast._engine.context import Context
from holdfast.errors import HoldfastError, NotFound
from holdfast.viewer import joining
from holdfast.viewer.page import page
from holdfast.viewer.reading import READINGS, answer, query_of
from holdfast.views.documents import as_json
from holdfast.views.showing import Redact, Showing

# The numbers that the page's modules ask with.
CARDS, ROWS, STEPS, STRETCHES, POINTS = 50, 200, 500, 2000, 200
COMPARED = 4
# About how large the answers of one file may be, and how many rows it lists.
LARGEST = 24 << 20
MOST_ROWS = 5_000

_STYLE = re.compile(r'<link rel="stylesheet"[^>]*>')
_SCRIPT = re.compile(r'<script type="module"[^>]*></script>')
POLICY = (
    "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:;"
    " base-uri 'none'; form-action 'none'; require-trusted-types-for 'script';"
    " trusted-types 'none'"
)
NOTEBOOK = (
    '<iframe sandbox="allow-scripts" srcdoc="{}"'
    ' style="width:100%;height:40rem;border:0"></iframe>'
)


async def export_html(
    context: Context, threads: Sequence[str], redact: Redact | None = None
) -> str:
    """A page with everything that a person wants to see of some threads.

    ``redact`` gets each text first, and gives it back without what must stay secret.
    """
    made = Answers(context, Showing(redact))
    await made.ask("store")
    cards = [await made.thread(thread) for thread in threads]
    made.put("threads", {"limit": CARDS}, {"threads": cards, "next": None})
    for thread, card in zip(threads, cards, strict=True):
        await made.history(thread, card)
    return _page(made.answers)


async def notebook_html(context: Context, thread: str) -> str:
    """The page of a thread for a cell of a notebook, in a frame without rights."""
    whole = await export_html(context, [thread])
    return NOTEBOOK.format(escape(whole, quote=True))


class Answers:
    """The answers of one file, by question."""

    def __init__(self, context: Context, showing: Showing) -> None:
        self.context, self.showing = context, showing
        self.answers: dict[str, Any] = {}
        self.size = 0
        self._known: dict[Hashable, str] = {}

    def put(self, name: str, params: Mapping[str, Any], document: Any) -> None:
        """Keep the answer to a question."""
        found = answer(name, document)
        text = as_json(found)
        asked, same = f"GET {question(name, params)}", sha256(text).digest()
        if not self._repeat(asked, same):
            self._add(asked, found, len(text))
            self._known[same] = asked

    def _repeat(self, asked: str, same: Hashable) -> bool:
        """Name the answer that is the same, if there is one."""
        known = self._known.get(same)
        if known is not None and known != asked:
            self._add(asked, known, len(known))
        return known is not None

    def _add(self, asked: str, found: Any, size: int) -> None:
        self.answers[asked] = found
        self.size += len(asked) + size

    async def ask(self, name: str, **params: Any) -> dict[str, Any]:
        """Answer a question as the server does, and keep the answer."""
        return await self.answered(name, params, params)

    async def answered(
        self, name: str, params: Mapping[str, Any], asked: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Keep the answer to ``asked`` as the one to ``params``."""
        reading = READINGS[name]
        texts = {key: list(map(str, _listed(value))) for key, value in asked.items()}
        query = query_of(reading, texts)
        document = await reading.view(self.context, query, self.showing)
        self.put(name, params, document)
        return document

    async def thread(self, thread: str) -> dict[str, Any]:
        """A card; also the answer to the question for this thread."""
        return await self.ask("thread", thread=thread)

    async def history(self, thread: str, card: Mapping[str, Any]) -> None:
        """The log, the line and the checkpoints of a thread."""
        rows = await self._log(thread, "family")
        await self._log(thread, "line")
        await self.ask("minimap", thread=thread, buckets=STRETCHES)
        await self._line(thread, card["steps"])
        head = card["head"]
        if head is not None:
            await self._head(thread, head, card["family"])
        lines = {thread}
        for row in rows:
            if self.size > LARGEST:
                break
            # The newest row of a fork is its head: the page scrubs along its line, too.
            if row["thread"] not in lines:
                lines.add(row["thread"])
                await self._line(row["thread"], row["step"])
            await self._checkpoint(thread, row)

    async def _line(self, thread: str, steps: int) -> None:
        try:
            for first in range(0, min(steps, MOST_ROWS), STEPS):
                await self.ask("line", thread=thread, first=first, limit=STEPS)
        except NotFound:
            return  # the thread that saved a checkpoint may be deleted

    async def _log(self, thread: str, scope: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        cursor: dict[str, str] = {}
        while len(rows) < MOST_ROWS:
            found = await self.ask(
                "log", thread=thread, scope=scope, limit=ROWS, **cursor
            )
            rows += found["rows"]
            if found["next"] is None:
                break
            cursor = {"cursor": found["next"]}
        return rows

    async def _head(
        self, thread: str, head: str, family: Sequence[Mapping[str, Any]]
    ) -> None:
        await self.ask("charts", thread=thread, tip=head, buckets=POINTS)
        heads = [one["head"] for one in family if one["id"] != thread and one["head"]]
        points = list(dict.fromkeys([head, *heads]))[:COMPARED]
        if len(points) > 1:
            await self.ask("compare", at=points)

    async def _checkpoint(self, thread: str, row: Mapping[str, Any]) -> None:
        id_, parent = row["id"], row["parent"]
        try:
            await self.ask("checkpoint", id=id_)
            await self.ask("messages", checkpoint=id_)
            # Deeper than the page asks for: it cannot ask again.
            deep = {"checkpoint": id_, "depth": 5, "limit": 1000}
            await self.answered("state", {"checkpoint": id_}, deep)
            await self.ask("context", checkpoint=id_)
            if parent is not None:
                await self.ask("diff", **{"from": parent, "to": id_})
            await self.ask("effects", thread=thread, at=id_)
            await self._files(id_)
        except HoldfastError:
            return  # damaged, or removed meanwhile; the page says that it is not there

    async def _files(self, id_: str) -> None:
        """The first page of a checkpoint's files, and the content of each."""
        for file in (await self.ask("files", checkpoint=id_))["files"]:
            if self.size > LARGEST:
                break
            params = {"checkpoint": id_, "position": file["position"]}
            same = (file["path"], file["mode"], file["sha256"])
            asked = f"GET {question('file', params)}"
            # Most files are as before: their content is not read again.
            if not self._repeat(asked, same):
                await self.ask("file", **params)
                self._known[same] = asked


def question(name: str, params: Mapping[str, Any]) -> str:
    """A question as the page writes it: `URLSearchParams`, sorted by name."""
    pairs = [
        f"{_encoded(key)}={_encoded(str(one))}"
        for key, value in sorted(params.items())
        for one in _listed(value)
    ]
    return f"{name}?{'&'.join(pairs)}" if pairs else name


def _encoded(text: str) -> str:
    return quote_plus(text, safe="*").replace("~", "%7E")


def _listed(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _page(answers: Mapping[str, Any]) -> str:
    """The page with its script, its style and its answers inside."""
    script = joining.script().replace("</", "<\\/")
    style = joining.style()
    policy = POLICY.format(_hashed(script), _hashed(style))
    text = as_json(answers).decode().replace("<", "\\u003c")
    allowed = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    inside = (
        f'<script type="application/json" id="holdfast-data">{text}</script>\n'
        f'<script type="module">{script}</script>'
    )
    whole = page(base="", write=False)
    whole = _STYLE.sub(lambda _: f"{allowed}\n<style>{style}</style>", whole, count=1)
    return _SCRIPT.sub(lambda _: inside, whole, count=1)


def _hashed(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
