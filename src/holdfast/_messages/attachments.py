"""Messages as a conversation stores them, with large attachments in a separate list.

The state of a conversation has a list of contents and a list of their digests. Its
messages have only the digests, so that equal contents are stored once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any, cast

import msgspec

from holdfast._messages.loose import fields_of, parts_of
from holdfast._values import codec
from holdfast.errors import FormatMismatch
from holdfast.messages import MARK, AnyMessage, accepted, stored

# Contents of at least this length are stored in the separate list.
LARGE = 1024

Stored = dict[str, Any]


class StoredMessages(msgspec.Struct, frozen=True):
    """Messages as stored, and the contents taken out of them, by digest."""

    messages: list[Stored]
    contents: dict[str, object]

    def apart(self, known: object) -> dict[str, list[object]]:
        """Elements to append to the lists of contents, without the ``known`` ones."""
        ids = parts_of(known)
        new = {key: data for key, data in self.contents.items() if key not in ids}
        return {"content_ids": list(new), "contents": list(new.values())} if new else {}

    def all_apart(self, known: object) -> dict[str, object]:
        """The complete lists of contents, in the order of the ``known`` digests."""
        # A content at its old position in the list is not stored again.
        old = (key for key in parts_of(known) if isinstance(key, str))
        ids = [key for key in old if key in self.contents]
        ids += [key for key in self.contents if key not in ids]
        contents = [self.contents[key] for key in ids]
        return {"content_ids": ids, "contents": contents} if ids else {}


def kept(messages: Iterable[AnyMessage]) -> StoredMessages:
    """Messages as they are stored in a state."""
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


def kept_new(messages: Iterable[AnyMessage]) -> StoredMessages:
    """New messages as they are stored; an unknown role is refused."""
    return kept(map(accepted, messages))


def whole(state: Mapping[str, Any]) -> list[Stored]:
    """The messages of a state with the contents of their attachments.

    `FormatMismatch` if what a program saved there is no transcript.
    """
    messages: list[Stored] = state.get("messages", [])
    # Plain threads have texts among their messages.
    if type(messages) is not list or not {*map(type, messages)} <= {dict, str}:
        text = "the value 'messages' is no list of messages; load the thread instead"
        raise FormatMismatch(text)
    ids, contents = parts_of(state.get("content_ids")), parts_of(state.get("contents"))
    known = {
        id_: content
        for id_, content in zip(ids, contents, strict=False)
        if isinstance(id_, str)
    }

    def put_back(attachment: Mapping[str, object]) -> object:
        digest = fields_of(attachment.get("content")).get("stored")
        if not isinstance(digest, str) or digest not in known:
            return attachment
        return {**attachment, "content": known[digest]}

    return [_each(message, put_back) for message in messages] if known else messages


def _each(message: Stored, change: Callable[[Mapping[str, object]], object]) -> Stored:
    """A `Message` with its attachments changed; any other message as it is."""
    attachments = fields_of(message).get("attachments")
    if MARK not in message or type(attachments) is not list:
        return message
    changed = [
        change(fields) if (fields := fields_of(part)) else part
        for part in parts_of(cast("object", attachments))
    ]
    return message | {"attachments": changed}
