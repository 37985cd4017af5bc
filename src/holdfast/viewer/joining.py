"""Joins the page's ES modules to one script, without a build and without a bundler.

The page then needs one request, and an exported file can hold the whole program. A
module becomes a function that returns what it exports. Supported is what our modules
use: ``import { a, b as c } from "./x.js"`` and ``export`` before a declaration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable

ENTRY = "app.js"
# These come first: the others use their variables and rules.
FIRST_STYLES = ("theme.css", "app.css")

_IMPORT = re.compile(
    r'^import\s*(?:\{([^}]*)\}\s*from\s*)?"\./([\w-]+\.js)";?[ \t]*$', re.MULTILINE
)
_EXPORT = re.compile(
    r"^export (?=(?:(?:async )?function\*? ?|class |const )(\w+|\{))", re.MULTILINE
)
_LEFT_OVER = re.compile(r"^(?:import|export)\b.*$|\bimport\(", re.MULTILINE)


def script(folder: Traversable | None = None) -> str:
    """All modules that the entry imports, and the entry, as one module."""
    modules = _texts(folder or static(), ".js")
    if ENTRY not in modules:
        return ""
    joined: dict[str, str] = {}
    _join(ENTRY, modules, joined, ())
    return "\n".join(joined.values())


def style(folder: Traversable | None = None) -> str:
    """All style sheets as one."""
    sheets = _texts(folder or static(), ".css")
    names = [name for name in FIRST_STYLES if name in sheets]
    names += sorted(sheets.keys() - set(FIRST_STYLES))
    return "\n".join(sheets[name] for name in names)


def static() -> Traversable:
    """The folder of the page's modules and style sheets."""
    return files("holdfast.viewer") / "static"


def _texts(folder: Traversable, ending: str) -> dict[str, str]:
    if not folder.is_dir():
        return {}
    return {
        file.name: file.read_text("utf-8")
        for file in folder.iterdir()
        if file.name.endswith(ending)
    }


def _join(
    name: str, modules: Mapping[str, str], joined: dict[str, str], path: tuple[str, ...]
) -> None:
    """Add a module after all that it imports."""
    if name in joined:
        return
    if name in path or name not in modules:
        why = "imports itself" if name in path else "does not exist"
        raise ValueError(f"{name} {why}: {' -> '.join((*path, name))}")
    text = modules[name]
    for _, other in _IMPORT.findall(text):
        _join(other, modules, joined, (*path, name))
    joined[name] = _wrapped(name, text)


def _wrapped(name: str, text: str) -> str:
    exported = _EXPORT.findall(text)
    body = _EXPORT.sub("", _IMPORT.sub(_bound, text))
    left = _LEFT_OVER.search(body)
    if left is not None:
        raise ValueError(f"{name} has a line that cannot be joined: {left[0]}")
    returned = f"return {{ {', '.join(exported)} }};\n"
    return f"const {_variable(name)} = (() => {{\n{body}\n{returned}}})();"


def _bound(match: re.Match[str]) -> str:
    names, other = match.groups()
    if names is None:
        return ""
    bound = re.sub(r"\s+as\s+", ": ", " ".join(names.split()))
    return f"const {{ {bound} }} = {_variable(other)};"


def _variable(name: str) -> str:
    return "module_" + re.sub(r"\W", "_", name.removesuffix(".js"))
