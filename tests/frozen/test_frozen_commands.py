"""Commands print the JSON that programs of users read today."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import stores

import frozen
import holdfast.cli
from frozen.commands import SERVERS, STORIES
from frozen.shapes import sections
from inner.cli import NAMES, load
from support.folders import FIXTURES

FILE = "json/commands.txt"
# What users chose: values that they saved, and names.
FREE = (
    "arguments",
    "metadata",
    "new",
    "old",
    "previous",
    "result",
    "value",
    "conflicts[].base",
    "conflicts[].ours",
    "conflicts[].theirs",
    "counts.*",
    "found.*",
    "left.*",
    "values.*",
    "message/1.message",
    "show/1.state",
)


class Printed(NamedTuple):
    """A document, and the command that printed it."""

    command: str
    document: Any

    @property
    def schema(self) -> str:
        """The name and version of its schema, which a JSON Patch and an error lack."""
        if isinstance(self.document, list):
            return "JSON Patch"
        return self.document.get("schema", "error").removeprefix("holdfast.")


def test_commands_print_json_of_the_frozen_schemas(tmp_path, capfd):
    documents, commands = defaultdict(list), defaultdict(set)

    for printed in _printed(tmp_path, capfd):
        documents[printed.schema].append(printed.document)
        commands[printed.schema].add(printed.command)

    titled = {
        f"{', '.join(sorted(commands[schema]))}: {schema}": found
        for schema, found in documents.items()
    }
    frozen.compare(FILE, "\n\n".join(sections(titled, FREE)) + "\n")


def _printed(place: Path, capfd: pytest.CaptureFixture) -> Iterator[Printed]:
    for make, lines in STORIES.items():
        folder = place / make.__name__
        folder.mkdir()
        make(folder / "agents.db")
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            if Path("store.key").exists():
                patch.setenv("HOLDFAST_KEY_FILE", "store.key")
            for line in lines.strip().splitlines():
                yield from _printed_by(line.strip(), capfd)
    yield from _announced(place / stores.make_trip.__name__)


def _printed_by(line: str, capfd: pytest.CaptureFixture) -> Iterator[Printed]:
    """What a command prints in each way that it knows."""
    _, fails, written = line.rpartition("! ")
    command, *rest = shlex.split(written.replace("FIXTURES", str(FIXTURES)))
    for way in _ways(command):
        holdfast.cli.main([command, way, *rest])
        out, err = capfd.readouterr()
        assert (out == "") is bool(fails), (line, err)
        for text in out.splitlines() if way == "--ndjson" else [out or err]:
            yield Printed(f"{command} {way}", json.loads(text))


def _ways(command: str) -> list[str]:
    """The options of a command that make it print JSON."""
    options = [option for found in load(command).params for option in found.opts]
    return [way for way in ("--json", "--ndjson") if way in options]


def _announced(folder: Path) -> Iterator[Printed]:
    """What commands print that start a server, and then run until they are ended."""
    start = (sys.executable, "-m", "holdfast")
    with ExitStack() as stack:
        processes = {
            line: stack.enter_context(
                subprocess.Popen(
                    [*start, *line.split(), "--json"],
                    cwd=folder,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for line in SERVERS
        }
        for line, process in processes.items():
            lines = takewhile(lambda text: text != "}\n", process.stdout)
            document = json.loads("".join(lines) + "}")
            process.terminate()
            yield Printed(f"{line.split()[0]} --json", document)


def _titles() -> list[tuple[set[str], str]]:
    """The commands and the schema of each section that is frozen."""
    found = re.findall(
        r"^# (.*): (.*)$", (frozen.HERE / FILE).read_text(), re.MULTILINE
    )
    return [(set(commands.split(", ")), schema) for commands, schema in found]


def test_every_command_with_json_has_a_schema():
    known = {f"{name} {way}" for name in NAMES for way in _ways(name)}

    assert known == set().union(*(commands for commands, _ in _titles()))


def test_every_schema_that_a_command_names_is_frozen():
    files = Path(holdfast.cli.__file__).parent.rglob("*.py")
    named = {
        name
        for file in files
        for name in re.findall(r'"([a-z_-]+/[0-9]+)"', file.read_text())
    }

    assert named <= {schema for _, schema in _titles()}
