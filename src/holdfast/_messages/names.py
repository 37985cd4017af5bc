"""Names and ids as providers accept them."""

from __future__ import annotations

import re
from hashlib import sha256

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64
_SPEAKER = re.compile(r"[^\s<|\\/>]{1,64}")
_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")


def tool_name(name: str) -> str:
    """The name of a tool, with an underscore for each character that is refused."""
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or "unknown"


def is_speaker(name: object) -> bool:
    """True if OpenAI accepts the name of a speaker."""
    return isinstance(name, str) and _SPEAKER.fullmatch(name) is not None


def anthropic_id(id_: str) -> str:
    """The id of a call; one that Anthropic refuses becomes its digest."""
    if is_anthropic_id(id_):
        return id_
    return "call_" + sha256(id_.encode(errors="surrogatepass")).hexdigest()[:32]


def is_anthropic_id(id_: object) -> bool:
    return isinstance(id_, str) and _ANTHROPIC_ID.fullmatch(id_) is not None
