"""docs/errors.md has every code that an error can have, and no other."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import holdfast
from support.folders import DOCS

SOURCE = Path(holdfast.__file__).parent
PAGE = (DOCS / "errors.md").read_text()
NAMES = ("code", "default_code")
# What the conformance suite expects is raised elsewhere; HTTP has codes of its own.
APART = ("testing/conformance", "viewer/static")


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def texts(node: ast.AST | None) -> Iterator[str]:
    """The texts that an expression may give; not those it is compared with."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from [*texts(node.body), *texts(node.orelse)]


def named(path: Path) -> dict[str, str]:
    """The texts that a module gives names to."""
    found: dict[str, str] = {}
    for node in tree(path).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for text in texts(node.value):
                found.update({ast.unparse(target): text for target in targets})
    return found


def codes(path: Path) -> Iterator[str]:
    """Every text that a module passes, assigns or defaults to as a code."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.keyword) and node.arg == "code":
            yield from texts(node.value)
            if isinstance(node.value, ast.Name):
                yield from filter(None, [named(path).get(node.value.id)])
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(t, ast.Name) and t.id in NAMES for t in targets):
                yield from texts(node.value)


@functools.cache
def found_in_the_source() -> set[str]:
    paths = [
        path
        for path in SOURCE.rglob("*.py")
        if not str(path.relative_to(SOURCE)).startswith(APART)
        and re.search(r"\b(default_)?code\b", path.read_text())
    ]
    return {code for path in paths for code in codes(path)}


def written_on_the_page() -> set[str]:
    rows = re.findall(r"^\| `([a-z_]+)` \| `", PAGE, re.MULTILINE)
    [usual] = re.findall(r"Each class has a code.*?\n\n", PAGE, re.DOTALL)
    return {*rows, *re.findall("`([a-z_]+)`", usual)}


def test_every_code_of_an_error_is_on_the_page():
    assert sorted(found_in_the_source() - written_on_the_page()) == []


def test_the_page_has_no_code_that_is_never_raised():
    assert sorted(written_on_the_page() - found_in_the_source()) == []


def test_every_class_of_an_error_is_on_the_page():
    assert all(f"| `{name}` |" in PAGE for name in holdfast.errors.__all__)
