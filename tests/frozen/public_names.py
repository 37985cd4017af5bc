"""Every public name as a line of text, whatever private module it is defined in.

Names, kinds, signatures and defaults are written out; of a docstring there is a digest.
Annotations have names of classes without their modules, bases only those that users
know. The adapters are read as text: most of their frameworks are not installed here.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import math
import re
import runpy
import tomllib
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeAlias, get_origin, get_overloads

import msgspec
from typing_extensions import is_protocol

import holdfast
from support.folders import DOCS, ROOT

SCRIPT = runpy.run_path(str(DOCS / "reference.py"))
fields_of, members, signature_of = (
    SCRIPT[name] for name in ("fields_of", "members", "signature_of")
)
SOURCE = Path(holdfast.__file__).parent
# Modules that are no offer, whatever they name: backends are reached by an address.
LEFT_OUT = tuple(
    f"holdfast.{name}" for name in ("adapters", "backends.", "cli.", "viewer.", "views")
)
# Beside its names, what a caller of a class may do with its objects.
PROTOCOLS = (
    "call enter exit aenter aexit await iter next aiter anext getitem len contains"
)
# A class whose constructor takes one of these is made by ours alone, never by users.
OUR_OWN = {"backend", "context", "runner"}
PLAIN = (bool, int, float, str, bytes, tuple, frozenset, type(None))
PREFIX = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])")
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Field: TypeAlias = ast.Assign | ast.AnnAssign
Definition: TypeAlias = Function | ast.ClassDef


def listing() -> str:
    """All public modules, and the types of ours that names of holdfast lead to."""
    modules = {name: importlib.import_module(name) for name in sorted(_module_names())}
    offered = {name: _offered(module) for name, module in modules.items()}
    known = {
        value.__name__
        for pairs in offered.values()
        for _, value in pairs
        if isinstance(value, type)
    }
    sections = [
        "\n".join([f"# {name} {_digest(modules[name])}", *_lines(pairs, name, known)])
        for name, pairs in offered.items()
    ]
    listed = {(name, id(value)) for pairs in offered.values() for name, value in pairs}
    reached = _reached([value for _, value in offered["holdfast"]], listed)
    others = sorted("\n".join(_named(*named, known)) for named in reached)
    adapters = map(_adapter, sorted(SOURCE.glob("adapters/*/__init__.py")))
    others = ["# what annotations of names of holdfast name", *others]
    return "\n\n".join([_packaging(), *sections, *adapters, "\n".join(others)]) + "\n"


def _packaging() -> str:
    """What is installed under which name, and what it needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [f"python {project['requires-python']}"]
    lines += sorted(f"needs {needed}" for needed in project["dependencies"])
    lines += [f"command {name} = {at}" for name, at in project["scripts"].items()]
    extras = project["optional-dependencies"]
    lines += [f"extra {name} = {', '.join(extras[name])}" for name in sorted(extras)]
    return "\n".join(["# packaging", *lines])


def _module_names() -> Iterator[str]:
    """Modules that say what they offer, and all beside the package's `__init__`."""
    for file in SOURCE.rglob("*.py"):
        parts = file.relative_to(SOURCE.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        if "._" not in name and not name.startswith(LEFT_OUT):
            is_beside = len(parts) == 2 and not is_package
            if is_beside or hasattr(importlib.import_module(name), "__all__"):
                yield name


def _offered(module: ModuleType) -> list[tuple[str, Any]]:
    if hasattr(module, "__all__"):
        return [(name, getattr(module, name)) for name in sorted(module.__all__)]
    return [
        (name, value)
        for name, value in sorted(vars(module).items())
        if not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
    ]


def _lines(pairs: list[tuple[str, Any]], module: str, known: set[str]) -> Iterator[str]:
    main = vars(holdfast)
    for name, value in pairs:
        if module != "holdfast" and main.get(name, holdfast) is value:
            yield f"{name} = holdfast.{name}"
        else:
            yield from _named(name, value, known)


def _named(name: str, value: Any, known: set[str]) -> Iterator[str]:
    if isinstance(value, type):
        yield from _class(name, value, known)
    elif isinstance(value, FunctionType):
        yield _function("", name, value)
    else:
        yield f"{name} = {_value(value)}"


def _class(name: str, kind: type, known: set[str]) -> Iterator[str]:
    """A class with its bases, constructor or fields, members and protocols."""
    bases = [
        base.__name__
        for base in kind.__mro__[1:-1]
        if base.__name__ in known or base.__module__ in ("builtins", "typing")
    ]
    yield f"class {name}({', '.join(bases)}) {_digest(kind)}"
    ours = {word for base in kind.__mro__ if _is_ours(base) for word in vars(base)}
    is_record = hasattr(kind, "__struct_fields__")
    if not is_record and "__init__" in ours and not is_protocol(kind):
        if OUR_OWN.isdisjoint(inspect.signature(kind).parameters):
            yield f"    {_bare(signature_of('__init__', kind.__init__, math.inf))}"
    else:
        defaults = _defaults(kind) if is_record else {}
        for field in fields_of(kind):
            name = field.partition(":")[0]
            yield f"    {_bare(field)}{defaults.get(name, '')}"
    found = (_member(*member) for member in members(kind, lambda _: True))
    yield from sorted(f"    {line}" for line in found if line)
    if spoken := [word for word in PROTOCOLS.split() if f"__{word}__" in ours]:
        yield f"    protocols: {' '.join(spoken)}"


def _defaults(kind: Any) -> dict[str, str]:
    """What follows the fields of a record that may be left out."""
    given = kind.__struct_defaults__
    names = kind.__struct_fields__[len(kind.__struct_fields__) - len(given) :]
    return {
        name: f" = {_value(default)}"
        for name, default in zip(names, given, strict=True)
        if default is not msgspec.NODEFAULT
    }


def _member(name: str, member: Any) -> str:
    """A line for a method, a property or a plain value of a class, if it is one."""
    if isinstance(member, property | cached_property):
        getter = member.fget if isinstance(member, property) else member.func
        answer = getter.__annotations__.get("return", "")
        return f"{name} -> {_bare(str(answer))} {_digest(getter)}"
    if isinstance(member, staticmethod | classmethod):
        return _function(type(member).__name__ + " ", name, member.__func__)
    if isinstance(member, FunctionType):
        return _function("", name, member)
    return f"{name} = {_value(member)}" if isinstance(member, PLAIN) else ""


def _function(kind: str, name: str, function: Any) -> str:
    awaited = "async " if inspect.iscoroutinefunction(function) else ""
    ways = [signature_of(name, way, math.inf) for way in get_overloads(function)]
    line = _bare(" or ".join([signature_of(name, function, math.inf), *ways]))
    return f"{kind}{awaited}{line} {_digest(function)}"


def _value(value: object) -> str:
    """A plain value as it is written; of one with an address only its kind."""
    if isinstance(value, msgspec._core.Factory):
        return f"{value.factory.__name__}()"
    written = _bare(inspect.formatannotation(value))
    if "<" in written:
        return type(value).__name__
    return f"frozenset({sorted(value)})" if isinstance(value, frozenset) else written


def _bare(annotation: str) -> str:
    return PREFIX.sub("", annotation)


def _digest(documented: object) -> str:
    return _digest_of(inspect.getdoc(documented))


def _digest_of(text: str | None) -> str:
    words = " ".join((text or "").split())
    return f"[{hashlib.sha256(words.encode()).hexdigest()[:8]}]" if words else "[]"


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "holdfast"


def _reached(
    values: list[Any], listed: set[tuple[str, int]]
) -> Iterator[tuple[str, Any]]:
    """Types of ours that annotations of these name, and those that theirs name."""
    seen = set(listed)
    waiting = list(values)
    while waiting:
        for name, kind in _annotated(waiting.pop()):
            if (name, id(kind)) not in seen:
                seen.add((name, id(kind)))
                waiting.append(kind)
                yield name, kind


def _annotated(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, type) and _is_ours(value):
        for _, member in members(value, lambda _: True):
            parts = (
                getattr(member, part, None) for part in ("fget", "func", "__func__")
            )
            yield from _annotated(next((part for part in parts if part), member))
    if isinstance(value, FunctionType | type):
        given = value.__annotations__.items()
        texts = " ".join(str(text) for name, text in given if name[0] != "_")
        for name in re.findall(r"[A-Z]\w+", texts):
            kind = _names_in(value.__module__).get(name)
            if isinstance(kind, type) and _is_ours(kind):
                yield kind.__name__, kind
            elif get_origin(kind) is not None:  # a name for a type
                yield name, kind


@cache
def _names_in(module_name: str) -> dict[str, Any]:
    """The names of a module, those included that it imports for type checkers alone."""
    module = importlib.import_module(module_name)
    names = dict(vars(module))
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("holdfast"):
            home = importlib.import_module(str(node.module))
            for alias in node.names:
                names[alias.asname or alias.name] = getattr(home, alias.name, None)
    return names


def _adapter(file: Path) -> str:
    """What an adapter offers, found where its text defines it."""
    package = ast.parse(file.read_text())
    defined = {
        node.name: node
        for part in sorted(file.parent.rglob("*.py"))
        for node in ast.parse(part.read_text()).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    offered = next(
        ast.literal_eval(node.value)
        for node in package.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    lines = [
        line for name in sorted(offered) for line in _written(defined[name], defined)
    ]
    title = f"# holdfast.adapters.{file.parent.name} {_digest_in(package)}"
    return "\n".join([title, *lines])


def _written(node: Definition, defined: dict[str, Definition]) -> list[str]:
    """As `_named`, of a function or class that is read and not imported."""
    if not isinstance(node, ast.ClassDef):
        return [_written_function(node)]
    bases, found = _written_members(node, defined)
    lines = sorted(
        _written_function(member)
        if isinstance(member, Function)
        else _bare(ast.unparse(member))
        for name, member in found.items()
        if name[0] != "_" or name[:2] == "__"
    )
    title = f"class {node.name}({', '.join(bases)}) {_digest_in(node)}"
    return [title, *(f"    {line}" for line in lines)]


def _written_members(
    node: ast.ClassDef, defined: dict[str, Definition]
) -> tuple[list[str], dict[str, Function | Field]]:
    """The foreign bases of a class, its methods and fields, also of bases of ours."""
    bases: list[str] = []
    found: dict[str, Function | Field] = {}
    for base in map(ast.unparse, node.bases):
        ours = defined.get(base)
        if isinstance(ours, ast.ClassDef):
            more, inherited = _written_members(ours, defined)
            bases += more
            found |= inherited
        else:
            bases.append(base)
    for member in node.body:
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
            found[member.name] = member
        elif isinstance(member, ast.AnnAssign):
            found[ast.unparse(member.target)] = member
        elif isinstance(member, ast.Assign):
            found |= {ast.unparse(target): member for target in member.targets}
    return bases, found


def _written_function(node: Function) -> str:
    kinds = [f"{ast.unparse(kind)} " for kind in node.decorator_list]
    awaited = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    given = re.sub(r"^(self|cls)(, )?", "", ast.unparse(node.args))
    answer = ast.unparse(node.returns) if node.returns else ""
    line = f"{awaited}{node.name}({given}) -> {answer} {_digest_in(node)}"
    return "".join(kinds) + _bare(line)


def _digest_in(node: ast.Module | Definition) -> str:
    return _digest_of(ast.get_docstring(node))
