"""Names of threads that are made of any text of a framework."""

from __future__ import annotations

import re
from hashlib import sha256

__all__ = ["escaped"]

# Separators, control characters, and what is no Unicode; "~" begins a digest.
_SPECIAL = re.compile("[%/:~\x00-\x20\x7f\ud800-\udfff]")
# In bytes: three parts and a word stay below 512.
_LONGEST = 120
_BEGINNING = 20


def escaped(text: str) -> str:
    """The text as a part of a name; no two texts have the same, however long.

    Separators become ``%2F`` and the like. Of a long text the beginning stays, and a
    digest of all of it follows.
    """
    name = _SPECIAL.sub(_percent, text)
    if len(name.encode()) <= _LONGEST:
        return name
    digest = sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{name[:_BEGINNING]}~{digest}"


def _percent(found: re.Match[str]) -> str:
    encoded = found[0].encode(errors="surrogatepass")
    return "".join(f"%{byte:02X}" for byte in encoded)
