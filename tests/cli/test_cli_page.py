"""Every command, option, argument and exit status is documented, and as it is."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

import holdfast.cli
from inner.cli import (
    ALIASES,
    NAMES,
    ROOT,
    VARIABLES,
    exit_status,
    load,
    reference,
    rewritten,
    summary,
)
from support.folders import DOCS

PAGE = DOCS / "cli.md"
SOURCE = Path(holdfast.cli.__file__).parent


def test_the_page_is_what_the_commands_say():
    page = PAGE.read_text()

    assert page == rewritten(page), "run: make reference"
    assert page.endswith(reference())


@pytest.mark.parametrize("name", NAMES)
def test_a_summary_names_no_argument_that_only_the_usage_explains(name):
    command = load(name)
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    given = {metavar(command, argument) for argument in arguments}

    assert not given & set(re.findall(r"\w+", summary(command)))


@pytest.mark.parametrize("name", NAMES)
def test_a_command_explains_itself_its_options_and_its_arguments(name):
    command = load(name)

    assert command.help
    assert f"#### `holdfast {name}" in PAGE.read_text()
    for param in command.params:
        if isinstance(param, click.Option):
            assert param.help, param.name
        else:
            assert metavar(command, param) in command.help, param.name


@pytest.mark.parametrize("name", NAMES)
def test_a_help_page_lists_options_and_no_argument_without_a_word_about_it(
    name, capsys
):
    assert holdfast.cli.main([name, "--help"]) == 0
    # The lines below a heading; what goes on from the line before is indented further.
    sections = re.findall(r"^\w+:\n(?:  .*\n)+", capsys.readouterr().out, re.MULTILINE)

    listed = [word for text in sections for word in re.findall(r"\n  (\S+)", text)]
    assert listed
    assert [word for word in listed if not word.startswith("-")] == []


def metavar(command, param):
    return re.sub(r"[\[\].]", "", param.make_metavar(click.Context(command)))


def test_the_list_of_commands_has_their_summaries_whole(capsys):
    assert holdfast.cli.main(["--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())

    assert "..." not in shown.replace("[ARGS]...", "").replace("postgresql://...", "")
    for name in NAMES:
        assert f"{name} {summary(load(name))}" in shown
    for name, meant in ALIASES.items():
        assert f"{name} {meant}" in shown
        assert f"| `{name}` | `{meant}` |" in PAGE.read_text()


def test_every_option_of_all_commands_is_explained():
    assert all(param.help for param in ROOT.params)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_speaks_json(name):
    flags = {flag for param in load(name).params for flag in param.opts}

    assert "--json" in flags


def test_every_exit_status_has_a_meaning():
    statuses = {
        value
        for name, value in vars(exit_status).items()
        if name.isupper() and isinstance(value, int)
    }

    assert statuses == set(exit_status.MEANINGS)


def test_every_variable_that_is_looked_at_is_named():
    known = set(", ".join(VARIABLES).split(", "))
    sources = "".join(path.read_text() for path in SOURCE.rglob("*.py"))

    read = set(re.findall(r'environ(?:\.get\(|\[)"([A-Z_]+)"', sources))

    assert read
    assert read - {"COMP_WORDS"} <= known, "but for what shells pass to complete"


def test_every_module_of_a_command_is_registered():
    modules = {path.stem for path in (SOURCE / "commands").glob("[a-z]*.py")}

    assert modules == {load(name).callback.__module__.split(".")[-1] for name in NAMES}
