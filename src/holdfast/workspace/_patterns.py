"""Patterns of `.gitignore`, matched in a time that no pattern makes long.

A folder and a list of files can come from anywhere, and so can their rules. pathspec
makes regular expressions of them, in which every star of ``*a*a*a*b`` tries all that
the others leave: a name of 100 letters takes years. Here each star but the last takes
the first place that fits and keeps it, which finds the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from holdfast._api.plugins import import_extra

if TYPE_CHECKING:  # an extra
    from pathspec import GitIgnoreSpec

# The expressions of pathspec for `*`, for `/**/`, and for the end of a pattern.
_STAR, _FOLDERS, _BEGIN = "[^/]*", "(?:/.+)?", "(?:.+/)?"
_END = re.compile(r"(\(\?:\(\?P<ps_d>/\)\|\$\)|\(\?P<ps_d>/\))$")
_TOKEN = re.compile(
    r"\[\^/\]\*|\(\?:/\.\+\)\?|\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|.", re.DOTALL
)


def load_matcher() -> Any:
    """pathspec; `Unsupported` if its extra is missing."""
    return import_extra("pathspec", "a workspace", "workspace")


def matcher(lines: Iterable[str]) -> GitIgnoreSpec:
    """The matcher of some rules together."""
    spec = load_matcher().GitIgnoreSpec
    # The other engines do not know groups that keep what they have found.
    made: GitIgnoreSpec = spec.from_lines(lines, _pattern, backend="simple")
    return made


def _pattern(line: str) -> Any:
    """One rule; one that git does not understand matches nothing there either."""
    kind = _kind()
    try:
        made = kind(line)
        if made.regex is not None:
            made.regex = re.compile(bounded(made.regex.pattern))
    except (ValueError, re.error):
        return kind("")
    return made


@cache
def _kind() -> Any:
    from pathspec.patterns.gitignore.spec import (  # noqa: PLC0415 - of an extra
        GitIgnoreSpecPattern,
    )

    return GitIgnoreSpecPattern


def bounded(pattern: str) -> str:
    """An expression of pathspec as one that matches the same, and never tries again."""
    start = "^" if pattern.startswith("^") else ""
    start += _BEGIN if pattern.startswith(start + _BEGIN) else ""
    found = _END.search(pattern)
    end = found[0] if found else ""
    tokens = _TOKEN.findall(pattern[len(start) : len(pattern) - len(end)])
    *parts, last = map(_in_segments, _split(tokens, _FOLDERS))
    # The part after "/**" is looked for from the left, and the first match is kept.
    first, *middle = parts or [""]
    rest = [f"(?>(?:/.+?)??{part}(?=/))" for part in middle]
    return start + first + "".join(rest) + (_FOLDERS if parts else "") + last + end


def _in_segments(tokens: list[str]) -> str:
    return "/".join(map(_segment, _split(tokens, "/")))


def _segment(tokens: list[str]) -> str:
    """Within a name each star but the last takes as little as possible."""
    first, *others = ("".join(map(_letter, p)) for p in _split(tokens, _STAR))
    if not others:
        return first
    *middle, last = others
    # Stars that follow one another are one.
    kept = "".join(f"(?>[^/]*?{part})" for part in middle if part)
    return first + kept + _STAR + last


def _letter(token: str) -> str:
    """One letter; no set of letters has the slash, as in git."""
    is_set = token.startswith("[") and token.endswith("]") and token != "[^/]"  # noqa: S105 - a pattern
    return f"(?!/){token}" if is_set else token


def _split(tokens: list[str], at: str) -> Iterator[list[str]]:
    part: list[str] = []
    for token in tokens:
        if token == at:
            yield part
            part = []
        else:
            part.append(token)
    yield part
