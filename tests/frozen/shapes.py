"""The schema of JSON documents as lines of text, derived from the documents."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

TYPES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


def sections(
    documents: Mapping[str, Sequence[Any]], free: Collection[str]
) -> list[str]:
    """A section for each name, with a line for each key that its documents have.

    "rows[].label?: null | string" is a key that some rows have, and others do not. What
    is ``free`` was chosen by users: "metadata" is a value of any type, wherever a path
    ends with it, "show/1.state" one of a section whose name ends with "show/1", and
    "values.*" are keys, but not the types of their values.
    """
    ends = [re.compile(rf"(?:^|[. /]){re.escape(name)}$") for name in free]

    def is_free(path: str) -> bool:
        return any(end.search(path) for end in ends)

    def lines(path: str, values: Sequence[Any], mark: str = "") -> Iterator[str]:
        if is_free(path):
            yield f"{path}{mark}: any"
            return
        types = sorted({TYPES[type(value)] for value in values})
        yield f"{path}{mark}: {' | '.join(types)}"
        objects = [value for value in values if isinstance(value, dict)]
        if objects and is_free(f"{path}.*"):
            held = [item for found in objects for item in found.values()]
            yield from lines(f"{path}.<any>", held) if held else ()
            return
        for key in sorted({key for found in objects for key in found}):
            held = [found[key] for found in objects if key in found]
            mark = "?" if len(held) < len(objects) else ""
            yield from lines(f"{path}.{key}", held, mark)
        if items := [item for v in values if isinstance(v, list) for item in v]:
            yield from lines(f"{path}[]", items)

    parts = []
    for name, found in sorted(documents.items()):
        _, *below = lines(name, found)
        keys = (line.removeprefix(name).removeprefix(".") for line in below)
        parts.append("\n".join([f"# {name}", *keys]))
    return parts
