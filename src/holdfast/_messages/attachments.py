"""Messages as a conversation keeps them: large contents of attachments apart, once.

The state of a conversation has a list of contents and one of their digests; a message
that brings a content which is there already adds nothing but a reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

import msgspec

from holdfast._messages.transcript import fields_of, parts_of
from holdfast._values import codec
from holdfast.messages import MARK, AnyMessage, stored

# Contents at least this long are kept apart.
LARGE = 1024

Stored = dict[str, Any]


class StoredMessages(msgspec.Struct, frozen=True):
    """Messages as stored, and what was taken out of them by its digest."""

    messages: list[Stored]
    contents: dict[str, object]

    def apart(self, known: Sequence[object]) -> dict[str, list[object]]:
        """Elements for the lists of contents that do not hold them yet."""
        new = {key: data for key, data in self.contents.items() if key not in known}
        return {"content_ids": list(new), "contents": list(new.values())} if new else {}

    def all_apart(self, known: Sequence[str]) -> dict[str, object]:
        """The lists of contents, in the known order as far as there is one."""
        # What keeps its place among the old ones is found there and not stored again.
        ids = [key for key in known if key in self.contents]
        ids += [key for key in self.contents if key not in ids]
        contents = [self.contents[key] for key in ids]
        return {"content_ids": ids, "contents": contents} if ids else {}


def kept(messages: Iterable[AnyMessage]) -> StoredMessages:
    """Messages as they go into a state."""
    contents: dict[str, object] = {}

    def take_out(attachment: Mapping[str, object]) -> object:
        content = attachment.get("content")
        if not isinstance(content, str | bytes) or len(content) < LARGE:
            return attachment
        digest = sha256(codec.encode(content, "attachment")).hexdigest()
        contents[digest] = content
        return {**attachment, "content": {"stored": digest}}

    kept = [_each(stored(message), take_out) for message in messages]
    return StoredMessages(kept, contents)


def whole(state: Mapping[str, Any]) -> list[Stored]:
    """The messages of a state with their contents put back."""
    messages: list[Stored] = state.get("messages", [])
    known = dict(
        zip(state.get("content_ids", ()), state.get("contents", ()), strict=False)
    )

    def put_back(attachment: Mapping[str, object]) -> object:
        digest = fields_of(attachment.get("content")).get("stored")
        if not isinstance(digest, str) or digest not in known:
            return attachment
        return {**attachment, "content": known[digest]}

    return [_each(message, put_back) for message in messages] if known else messages


def _each(message: Stored, change: Callable[[Mapping[str, object]], object]) -> Stored:
    """A message of ours with its attachments changed; any other as it is."""
    attachments = message.get("attachments")
    if MARK not in message or type(attachments) is not list:
        return message
    changed = [
        change(fields) if (fields := fields_of(part)) else part
        for part in parts_of(cast("object", attachments))
    ]
    return message | {"attachments": changed}
