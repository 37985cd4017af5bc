"""The reference of the Python API as Markdown, made from signatures and docstrings.

`python docs/reference.py docs/api.md` writes it into the page, behind its introduction.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, is_typeddict

import holdfast

MARK = "<!-- from here on made by: make reference -->\n"
LINE = 80
POSITIONAL = inspect.Parameter.POSITIONAL_ONLY
KEYWORD = inspect.Parameter.KEYWORD_ONLY
VARIADIC = inspect.Parameter.VAR_POSITIONAL
METHODS = (FunctionType, classmethod, staticmethod, property)
STARS: dict[object, str] = {VARIADIC: "*", inspect.Parameter.VAR_KEYWORD: "**"}
FUNCTIONS = ("open", "open_async", "salvage")
DECLARATIONS = ("once", "repeatable")
SYNC = ("Store", "Thread", "Stream", "Recorder")
ASYNC = ("AsyncStore", "AsyncThread", "AsyncStream", "AsyncRecorder")
# Public modules whose names are not all names of `holdfast` itself.
MODULES = (
    "messages",
    "effects",
    "strategy",
    "diff",
    "tools",
    "keys",
    "telemetry",
    "testing",
    "testing.faults",
)


def reference() -> str:
    """Every public function, class, method, field and option."""
    parts = list(_parts())
    named = sorted({*re.findall(r"Unpack\[(\w+)\]", "\n".join(parts))})
    return "\n\n".join([*parts, *_options(named)]) + "\n"


def rewritten(page: str) -> str:
    """A page with its reference made from the code as it is now."""
    written, mark, _ = page.partition(MARK)
    assert mark, f"the page has no line {MARK}"
    return f"{written}{MARK}\n{reference()}"


def _parts() -> Iterator[str]:
    yield "## Opening"
    for name in FUNCTIONS:
        yield from _function(f"holdfast.{name}", getattr(holdfast, name), "###")
    yield "## Stores, threads and recorders"
    for kind in [*_named(SYNC), *_collections()]:
        yield from _class(kind)
    yield "## Declaring tools"
    for name in DECLARATIONS:
        yield from _function(f"holdfast.{name}", getattr(holdfast, name), "###")
    yield "## The async API"
    for kind in _named(ASYNC):
        yield from _heading(kind)
    yield "## Records"
    for kind in _named(_records()):
        yield from _class(kind)
    yield "## Errors"
    for name in holdfast.errors.__all__:
        yield from _heading(getattr(holdfast, name))
    for name in MODULES:
        yield from _module(f"holdfast.{name}")


def _options(names: list[str]) -> Iterator[str]:
    yield "## Options by keyword"
    yield "What a signature above has as `**options: Unpack[...]`."
    ours = [m for name, m in sorted(sys.modules.items()) if name.startswith("holdfast")]
    for name in names:
        yield from _class(next(vars(m)[name] for m in ours if name in vars(m)))


def _named(names: tuple[str, ...]) -> list[type]:
    return [getattr(holdfast, name) for name in names]


def _records() -> tuple[str, ...]:
    others = {*FUNCTIONS, *DECLARATIONS, *SYNC, *ASYNC, *holdfast.errors.__all__}
    kinds = (n for n in holdfast.__all__ if isinstance(getattr(holdfast, n), type))
    return tuple(name for name in kinds if name not in others)


def _collections() -> list[type]:
    with holdfast.open(":memory:") as store:
        changes = store.transaction()
        return [
            type(changes),
            type(changes.thread("any")),
            type(changes.stream("any")),
            type(store.agents),
            type(store.conversations),
            type(store.documents),
        ]


def _module(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    yield f"## `{name}`"
    yield _doc(module)
    for public in module.__all__:
        member = getattr(module, public)
        if member is getattr(holdfast, public, None):
            continue  # it is among the records
        if isinstance(member, type):
            yield from _class(member)
        elif isinstance(member, FunctionType):
            yield from _function(f"{name}.{public}", member, "###")


def _class(kind: type) -> Iterator[str]:
    yield from _heading(kind)
    if fields := "\n".join(fields_of(kind)):
        yield _fenced(fields)
    for name, member in members(kind, _is_offered):
        yield from _member(f"{kind.__name__}.{name}", member)


def fields_of(kind: type) -> Iterator[str]:
    """Each field of a record or a mapping of options, with its type."""
    fields: Any = getattr(kind, "__struct_fields__", getattr(kind, "_fields", ()))
    for name in kind.__annotations__ if is_typeddict(kind) else fields:
        yield f"{name}: {_hint(kind, name)}"


def _heading(kind: type) -> Iterator[str]:
    yield f"### `{kind.__name__}`"
    yield _doc(kind)


def members(kind: type, is_wanted: Callable[[Any], bool]) -> Iterator[tuple[str, Any]]:
    """The public members of a class, and of those of ours that it inherits from."""
    seen = set()
    for owner in kind.__mro__:
        if not owner.__module__.startswith("holdfast"):
            continue
        for name, member in vars(owner).items():
            is_public = not name.startswith(("_", "test_")) and name not in seen
            seen.add(name)
            if is_public and is_wanted(member):
                yield name, member


def _is_offered(member: Any) -> bool:
    return isinstance(member, METHODS) and bool(inspect.getdoc(member))


def _member(name: str, member: Any) -> Iterator[str]:
    if isinstance(member, property):
        yield f"#### `{name}`"
        yield _doc(member)
    else:
        yield from _function(name, getattr(member, "__func__", member), "####")


def _function(name: str, function: Any, level: str) -> Iterator[str]:
    yield f"{level} `{name}`"
    yield _fenced(signature_of(name.rpartition(".")[2], function))
    yield _doc(function)


def signature_of(name: str, function: Any, length: float = LINE) -> str:
    """A signature in one line of at most this length, or a line a parameter."""
    signature = inspect.signature(function)
    given = list(_parameters(signature))
    answer = f" -> {_text(signature.return_annotation)}"
    line = f"{name}({', '.join(given)}){answer}"
    if len(line) <= length:
        return line
    return f"{name}(\n    " + ",\n    ".join(given) + f",\n){answer}"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    before = None
    for parameter in signature.parameters.values():
        kind = parameter.kind
        if before is POSITIONAL and kind is not POSITIONAL:
            yield "/"
        if kind is KEYWORD and before not in (KEYWORD, VARIADIC):
            yield "*"
        before = kind
        if parameter.name not in ("self", "cls"):
            yield _parameter(parameter)


def _parameter(parameter: inspect.Parameter) -> str:
    text: str = STARS.get(parameter.kind, "") + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {_text(parameter.annotation)}"
    return text if parameter.default is parameter.empty else text + _default(parameter)


def _default(parameter: inspect.Parameter) -> str:
    # A function's or an object's address would differ from run to run, as would a
    # set's order.
    default = repr(parameter.default)
    if isinstance(parameter.default, frozenset):
        default = f"frozenset({sorted(parameter.default)})"
    return f" = {'...' if default.startswith('<') else default}"


def _hint(kind: type, name: str) -> str:
    hints = (vars(owner).get("__annotations__", {}) for owner in kind.__mro__)
    return next((_text(found[name]) for found in hints if name in found), "Any")


def _text(annotation: Any) -> str:
    # In a named tuple, what was written is in a reference that stands for it.
    written = getattr(annotation, "__forward_arg__", annotation)
    if not isinstance(written, str):
        written = inspect.formatannotation(written)
    return written.replace("'", '"')


def _doc(documented: Any) -> str:
    return inspect.getdoc(documented) or ""


def _fenced(code: str) -> str:
    # Not "python": the code of pages in that language is run by the tests.
    return f"```py\n{code}\n```"


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        made = rewritten(file.read())
    with open(sys.argv[1], "w") as file:
        file.write(made)
