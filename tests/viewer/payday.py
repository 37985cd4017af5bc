"""A conversation with payments of every outcome, and texts that want to be markup."""

from __future__ import annotations

import contextlib
import json
from datetime import timedelta
from typing import Any

import holdfast
from holdfast.testing import FakeClock, ids

EVENING = 1_794_765_600_000_000  # 2026-11-15 18:00 UTC
THREAD = "conversation:payday"
NOTES = "notes"
TALK = "talk"
DRAFT = "We write to tell you that the refund for your order was denied by our desk."
REVISED = (
    "We write to tell you that the refund for your parcel was granted by our shop."
)
HOSTILE = (
    "<img src=x onerror=\"document.title='broken'\">"
    "<script>document.title='broken'</script>"
    "<a href=\"javascript:document.title='broken'\">click</a>"
)
# A picture of one red point.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/"
    "iZk9HQAAAABJRU5ErkJggg=="
)


class Killed(BaseException):
    """The program ends in the middle of a call."""


def open_payday(path: str) -> None:
    """Make the store at ``path``; equal in every run, down to times and ids."""
    clock = FakeClock(EVENING)
    options: Any = {"clock": clock, "new_id": ids("p-"), "durability": "normal"}
    with holdfast.open(path, **options) as store:
        payday = _Payday(store, clock)
        payday.says("Pay everybody on the list.")
        payday.pays("first", "ann", 100)
        payday.fails("second", "bob", 200)
        payday.pays("third", "cem", 300)
        payday.goes_back()
        payday.pays("again", "cem", 300)
        payday.pays("fourth", HOSTILE, 400)
        payday.is_killed("fifth", "dee", 500)
        _notes(store)
        _talk(store)
        _hostile(store)


@holdfast.once
def pay(to: str, amount: int) -> dict[str, Any]:
    """A transfer."""
    return {"receipt": f"{to}-{amount}"}


class _Payday:
    def __init__(self, store: holdfast.Store, clock: FakeClock) -> None:
        self.clock = clock
        self.run = store.conversations.recorder("payday", tools={"pay": pay})

    def says(self, text: str) -> None:
        self.run.add({"role": "user", "content": text})
        self.run.save()

    def _asks(self, call: str, to: str, amount: int) -> None:
        self.clock.advance(timedelta(seconds=20))
        arguments = json.dumps({"to": to, "amount": amount})
        function = {"name": "pay", "arguments": arguments}
        asked = {"id": call, "type": "function", "function": function}
        said = {"role": "assistant", "content": None, "tool_calls": [asked]}
        self.run.llm_response(said)

    def pays(self, call: str, to: str, amount: int) -> None:
        self._asks(call, to, amount)
        self.run.tool_result(call, self.run.call(call))

    def fails(self, call: str, to: str, amount: int) -> None:
        def refused(**_: Any) -> None:
            raise ValueError("the card was declined")

        self._asks(call, to, amount)
        try:
            self.run.call(call, refused)
        except ValueError as error:
            self.run.tool_result(call, f"failed: {error}")

    def goes_back(self) -> None:
        self.run.save()
        self.run.resume(at="@3", tell=False)

    def is_killed(self, call: str, to: str, amount: int) -> None:
        def killed(**_: Any) -> None:
            raise Killed

        self._asks(call, to, amount)
        self.run.save()
        with contextlib.suppress(Killed):
            self.run.call(call, killed)


def _notes(store: holdfast.Store) -> None:
    """Values of every size, and a long text of which three words change."""
    notes = store.thread(NOTES)
    state = {
        "draft": DRAFT,
        "items": [f"item {n}" for n in range(150)],
        "deep": {"one": {"two": {"three": [1, 2.5, True, None]}}},
        "attempts": 1,
    }
    notes.save(state, kind="input", label="first")
    notes.save({**state, "attempts": 2}, kind="edit")
    notes.save({**state, "attempts": 2, "draft": REVISED}, kind="edit")


def _talk(store: holdfast.Store) -> None:
    """More messages than a page of the chat has."""
    talk = store.thread(TALK)
    said = [{"role": "user", "content": f"message number {n}"} for n in range(300)]
    said[20]["content"] += " has the word xylophone"
    talk.save({"messages": said})
    talk.append(messages=[{"role": "assistant", "content": "the last one"}])


def _hostile(store: holdfast.Store) -> None:
    """Markup in every field that a page may show."""
    thread = store.thread(f"x {HOSTILE}", owner=HOSTILE, agent=HOSTILE)
    picture = {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{PIXEL}"},
    }
    content = [{"type": "text", "text": HOSTILE}, picture]
    thread.save(
        {
            "title": HOSTILE,
            HOSTILE: {HOSTILE: [HOSTILE]},
            "long": "word " * 2_000 + HOSTILE,
            "messages": [
                {"role": HOSTILE, "content": HOSTILE, "name": HOSTILE},
                {"role": "user", "content": content},
            ],
        },
        kind="input",
        label=HOSTILE[:100],
        tags=[HOSTILE[:60]],
        metadata={HOSTILE: HOSTILE},
    )
    thread.fork(f"y {HOSTILE}").append(messages=[{"role": "user", "content": HOSTILE}])
