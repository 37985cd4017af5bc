"""Commands that pages show exist, with their options."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from inner.cli import ALIASES, NAMES, ROOT, load
from support.folders import DOCS
from support.folders import ROOT as REPOSITORY

TEXTS = sorted([*REPOSITORY.glob("*.md"), *DOCS.rglob("*.md")])
FENCED = re.compile(r"```(?:sh|console)\n(.*?)```", re.DOTALL)
TYPED = re.compile(r"^(?:\$ )?(holdfast\b.*)$", re.MULTILINE)
NOT_TYPED = {"holdfast archive 1"}  # the first line of an archive
INLINE = re.compile(r"`(holdfast [a-z-][^`\n]*)`")


def commands(path: Path) -> list[str]:
    """What a page lets its reader type, in blocks and within sentences."""
    text = path.read_text()
    blocks = "\n".join(FENCED.findall(text))
    outside = re.sub("```.*?```", "", text, flags=re.DOTALL)
    found = [*TYPED.findall(blocks), *INLINE.findall(outside)]
    return [typed for typed in found if typed not in NOT_TYPED]


def flags(command: click.Command) -> set[str]:
    return {flag for p in command.params for flag in (*p.opts, *p.secondary_opts)}


def mistakes(typed: str) -> list[str]:
    """The words of a command that the command line does not know."""
    words = shlex.split(typed, comments=True)[1:]
    named = [word for word in words if word in NAMES or word in ALIASES]
    known = flags(ROOT) | {"--help", "-h"}
    if named:
        known |= flags(load(ALIASES.get(named[0], named[0])))
    given = [word.partition("=")[0] for word in words if word.startswith("-")]
    plain = [word for word in words if re.fullmatch("[a-z]+", word)]
    unknown = plain[:1] if plain and not named else []
    return [*unknown, *(flag for flag in given if flag not in known and flag != "-")]


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.stem)
def test_every_command_on_a_page_exists_with_its_options(page):
    found = {typed: wrong for typed in commands(page) if (wrong := mistakes(typed))}

    assert found == {}
