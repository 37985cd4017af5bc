"""One message, named as `search` prints it: ``trip-7[3]``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast._api.store import Store
from holdfast._engine.context import Context
from holdfast._messages.transcript import role_of, text_of
from holdfast._values.records import Checkpoint
from holdfast.cli._invocation import Invocation
from holdfast.cli._resolve import locate
from holdfast.cli._thread_names import find_thread
from holdfast.cli.terminal.tables import Line
from holdfast.errors import NotFound
from holdfast.views.documents import plain
from holdfast.views.messages import message_documents, one_line_text
from holdfast.views.state_values import StateReader

_NAMED = re.compile(r"(?P<thread>.+)\[(?P<position>[0-9]{1,9})\]", re.DOTALL)


def names_message(store: Store, text: str) -> bool:
    """True if a text is the name of a message, and not that of a thread."""
    return bool(_NAMED.fullmatch(text)) and find_thread(store, text) is None


def show_message(cli: Invocation, store: Store, text: str) -> None:
    """Print the message that a text names."""
    found = _NAMED.fullmatch(text)
    assert found is not None  # `names_message` has looked
    target, position = locate(store, found["thread"]), int(found["position"])
    message = store.runner.run(_message_at, target.checkpoint, position, text)
    [document] = message_documents([message], position)
    about = {"reference": text, "checkpoint": target.checkpoint.id, **document}
    cli.out.answer(
        "message/1", {**about, "message": plain(message)}, _lines(text, message)
    )


async def _message_at(
    context: Context, checkpoint: Checkpoint, position: int, text: str
) -> object:
    messages = (await StateReader(context, checkpoint).transcript()).messages
    if position < len(messages):
        return messages[position]
    why = f"there is no {text}: the last message is [{len(messages) - 1}]"
    if not messages:
        why = f"there is no {text}: {checkpoint.thread} has no messages"
    hint = f"holdfast show {checkpoint.thread} --messages lists them"
    raise NotFound(f"{why}; {hint}", reference=text)


def _lines(name: str, message: object) -> Iterator[Line]:
    yield ((name, "reference"), ("  ", ""), (role_of(message), "name"))
    for line in (text_of(message) or one_line_text(message)).split("\n"):
        yield ((line, ""),)
