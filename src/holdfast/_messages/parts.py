"""The parts of messages of any provider: text, media, reasoning and calls.

A part has the mapping it was read from, so that a provider gets its own part back
unchanged. Nothing here raises on any content.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from holdfast._messages.loose import EMPTY, fields_of, kind_of, parts_of
from holdfast._messages.shapes import Fields, is_list, json_text
from holdfast._messages.transcript import TranscriptCall, call_in, decoded


class Text(msgspec.Struct, frozen=True):
    """Text that a person would read."""

    text: str
    source: Fields = EMPTY


class Thought(msgspec.Struct, frozen=True):
    """Reasoning of the model, which only its own provider takes back."""

    text: str
    source: Fields = EMPTY


class Media(msgspec.Struct, frozen=True, kw_only=True):
    """An image, audio, video or file: in base64, at a URL, or uploaded to OpenAI."""

    kind: str
    mime_type: str = ""
    base64: str = ""
    url: str = ""
    file_id: str = ""
    name: str = ""
    source: Fields = EMPTY

    @property
    def data_url(self) -> str:
        """Its URL, or the content itself as one."""
        mime_type = self.mime_type or "application/octet-stream"
        return self.url or f"data:{mime_type};base64,{self.base64}"

    @property
    def note(self) -> str:
        """A text that describes it, for a provider that does not take it."""
        length = len(self.base64.rstrip("=")) * 3 // 4
        size = f"{length} bytes" if length else ""
        about = (self.name, self.mime_type, self.url or self.file_id or size)
        return f"[{self.kind}: {', '.join(filter(None, about))}]"


class Call(msgspec.Struct, frozen=True):
    """A tool call, and its arguments as text, as the model wrote them.

    ``is_free`` means that they are free text and no JSON.
    """

    call: TranscriptCall
    text: str
    is_free: bool = False
    source: Fields = EMPTY


class Other(msgspec.Struct, frozen=True):
    """Something that only its own provider knows."""

    source: object


Part: TypeAlias = Text | Thought | Media | Call | Other


def text_in_place_of(part: Text | Media | Other) -> str:
    """The text for a provider that does not take a part."""
    if isinstance(part, Text):
        return part.text
    return part.note if isinstance(part, Media) else json_text(part.source)


def shortest(parts: list[Fields]) -> object:
    """The parts as a content: text if there is only one plain text part."""
    if not parts:
        return ""
    is_text = len(parts) == 1 and set(parts[0]) == {"type", "text"}
    return parts[0]["text"] if is_text else parts


# --- reading --------------------------------------------------------------------------


def contents_of(content: object) -> list[Part]:
    """The parts of a content: of text, of a list, or of any value."""
    parts = parts_of(content) if is_list(content) else [content]
    return [part_of(part) for part in parts if part is not None]


def result_of_tool(content: object) -> list[Part]:
    """The parts of a tool's result, which may be any value."""
    parts = parts_of(content)
    is_parts = parts and all(isinstance(p, str) or kind_of(fields_of(p)) for p in parts)
    if content is None or isinstance(content, str) or is_parts:
        return contents_of(content)
    return contents_of(content) if _is_part(content) else [Text(json_text(content))]


def _is_part(content: object) -> bool:
    kind = kind_of(fields_of(content))
    return bool(kind) and kind in _READERS


def part_of(value: object) -> Part:
    """A part in the format of any provider."""
    if isinstance(value, str):
        return Text(value)
    fields = fields_of(value)
    read = _READERS.get(kind_of(fields))
    return (read(fields) if read else None) or Other(value)


def call_part(entry: object) -> Part:
    """A call in an entry of ``tool_calls``, a block or an item."""
    fields = fields_of(entry)
    call = call_in(fields)
    if call is None:
        return Other(entry)
    free = fields_of(fields.get("custom"))
    if free or kind_of(fields) == "custom_tool_call":
        return Call(call, _string(free or fields, "input"), is_free=True, source=fields)
    written = _string(fields_of(fields.get("function")) or fields, "arguments")
    text = written if decoded(written) else json_text(call.arguments)
    return Call(call, text, source=fields)


def attachment_part(entry: object) -> Part:
    """An attachment of a `Message`."""
    fields = fields_of(entry)
    name, mime_type = _string(fields, "name"), _string(fields, "mime_type")
    kind, url = _string(fields, "kind") or "file", _string(fields, "url")
    content = fields.get("content")
    if kind in _NO_TEXT and isinstance(content, str):
        is_url = _DATA_URL.fullmatch(content) is not None
        url = content if is_url else url
        content = None if is_url else from_base64(content) or content
    elif kind == "code" or mime_type.startswith("text/"):
        content = as_text(content)
    if isinstance(content, str):
        return Text(f"{name}\n{content}" if name else content)
    if isinstance(content, bytes):
        mime_type = mime_type or _sniffed(content)
        base64 = b64encode(content).decode()
        return Media(kind=kind, mime_type=mime_type, base64=base64, name=name)
    return _linked(kind, url, name=name, mime_type=mime_type) or Other(entry)


# The text in these parts is mostly base64, or a URL with it.
_NO_TEXT = frozenset({"image", "audio", "video"})


def from_base64(text: str) -> bytes | None:
    """The bytes of a base64 text, ``None`` if it is not valid or empty."""
    try:
        found = b64decode(text, validate=True)
    except ValueError:
        return None
    return found if found and b64encode(found).decode() == text else None


def as_text(content: object) -> object:
    """Bytes as text, if they are text."""
    try:
        return content.decode() if isinstance(content, bytes) else content
    except UnicodeDecodeError:
        return content


_SIGNATURES = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"%PDF": "application/pdf",
}


def _sniffed(content: bytes) -> str:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    found = (mime for start, mime in _SIGNATURES.items() if content.startswith(start))
    return next(found, "")


def _string(fields: Fields, name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,(.*)", re.DOTALL)


def _linked(
    kind: str, url: str, *, name: str = "", mime_type: str = "", source: Fields = EMPTY
) -> Media | None:
    """Media at a URL, which may be the content itself."""
    data = _DATA_URL.fullmatch(url)
    if data:
        mime_type, base64 = data[1] or mime_type, data[2]
        return Media(
            kind=kind, mime_type=mime_type, base64=base64, name=name, source=source
        )
    made = Media(kind=kind, mime_type=mime_type, url=url, name=name, source=source)
    return made if url else None


# --- the parts of each provider -------------------------------------------------------


def _text(fields: Fields) -> Part | None:
    text = fields.get("text")
    return Text(text, fields) if isinstance(text, str) else None


def _bare_text(fields: Fields) -> Part | None:
    return _text(fields) if set(fields) == {"text"} else None


def _refusal(fields: Fields) -> Part | None:
    text = fields.get("refusal")
    return Text(text, fields) if isinstance(text, str) else None


def _thought(fields: Fields) -> Part:
    inner = [*parts_of(fields.get("summary")), *parts_of(fields.get("content"))]
    texts = [_string(fields_of(part), "text") for part in (fields, *inner)]
    return Thought(
        "\n".join(filter(None, [_string(fields, "thinking"), *texts])), fields
    )


def _chat_image(fields: Fields) -> Part | None:
    found = fields.get("image_url")
    url = found if isinstance(found, str) else _string(fields_of(found), "url")
    return _linked("image", url, source=fields) or _uploaded("image", fields)


def _uploaded(kind: str, fields: Fields, about: Fields | None = None) -> Media | None:
    about = fields if about is None else about
    file_id, name = _string(about, "file_id"), _string(about, "filename")
    made = Media(kind=kind, file_id=file_id, name=name, source=fields)
    return made if file_id else None


def _chat_file(fields: Fields) -> Part | None:
    return _file(fields, fields_of(fields.get("file")))


def _responses_file(fields: Fields) -> Part | None:
    return _file(fields, fields)


def _file(fields: Fields, about: Fields) -> Part | None:
    name, content = _string(about, "filename"), _string(about, "file_data")
    url = content if content.startswith("data:") else _string(about, "file_url")
    linked = _linked("file", url, name=name, source=fields)
    if linked or not content:
        return linked or _uploaded("file", fields, about)
    return Media(kind="file", base64=content, name=name, source=fields)


def _audio(fields: Fields) -> Part | None:
    audio = fields_of(fields.get("input_audio"))
    content, format_ = _string(audio, "data"), _string(audio, "format")
    made = Media(
        kind="audio", mime_type=f"audio/{format_}", base64=content, source=fields
    )
    return made if content else None


def _anthropic_media(fields: Fields) -> Part | None:
    source, name = fields_of(fields.get("source")), _string(fields, "title")
    kind = "image" if kind_of(fields) == "image" else "file"
    mime_type, content = _string(source, "media_type"), _string(source, "data")
    if kind_of(source) == "text":
        return Text(content, fields)
    if kind_of(source) == "url":
        return _linked(kind, _string(source, "url"), name=name, source=fields)
    made = Media(
        kind=kind, mime_type=mime_type, base64=content, name=name, source=fields
    )
    return made if content else None


def _generated_image(fields: Fields) -> Part | None:
    content = _string(fields, "result")
    mime_type = f"image/{_string(fields, 'output_format') or 'png'}"
    made = Media(kind="image", mime_type=mime_type, base64=content, source=fields)
    return made if content else None


_READERS: Mapping[str, Callable[[Fields], Part | None]] = {
    "": _bare_text,
    "text": _text,
    "input_text": _text,
    "output_text": _text,
    "refusal": _refusal,
    "thinking": _thought,
    "redacted_thinking": _thought,
    "reasoning": _thought,
    "reasoning_text": _thought,
    "summary_text": _thought,
    "image_url": _chat_image,
    "input_image": _chat_image,
    "computer_screenshot": _chat_image,
    "file": _chat_file,
    "input_file": _responses_file,
    "input_audio": _audio,
    "image": _anthropic_media,
    "document": _anthropic_media,
    "image_generation_call": _generated_image,
}
