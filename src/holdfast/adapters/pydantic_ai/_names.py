"""Names of threads and keys, made of ids with any characters."""

from __future__ import annotations

from urllib.parse import quote, unquote

CONVERSATION = "pydantic_ai"
RUN = "pydantic_ai_run"
# `quote` never returns this, so it stands for the empty text, which no name may be.
_EMPTY = "%"


def escaped(text: str, *, readable: str = "/:@") -> str:
    """A text as a part of a name; different texts stay different."""
    return quote(text, safe=readable, errors="surrogatepass") or _EMPTY


def thread_name(kind: str, id_: str) -> str:
    """The thread of a conversation or of a run."""
    return f"{kind}:{escaped(id_)}"


def id_of(thread: str) -> str:
    """The id of the conversation that a thread holds."""
    found = thread.partition(":")[2]
    return "" if found == _EMPTY else unquote(found, errors="surrogatepass")
