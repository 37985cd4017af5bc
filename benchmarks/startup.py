"""What importing the library costs, and what it brings with it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import holdfast
from benchmarks.measure import Bench, alternate
from benchmarks.report import Row, times

ROOT = Path(__file__).resolve().parent.parent
PATH = str(Path(holdfast.__file__).parent.parent)
# Isolated, so that no variable of this shell has a say; the path is added by hand.
READY = f"import sys; sys.path.append({PATH!r}); "
MODULES = "; print(*{name.partition('.')[0] for name in sys.modules})"


def startup(bench: Bench) -> None:
    """A process that imports the library against one that does nothing.

    Names may be loaded when they are first used, so a second row uses one, and all of
    them are looked at for optional dependencies.
    """
    needed = _loaded(f"import sys, {', '.join(_needed())}")
    optional = sorted(_loaded(f"{READY}from holdfast import *") - needed)
    problem = f"imports {', '.join(optional)}" if optional else ""
    _row(bench, "import holdfast", 4, problem)
    _row(bench, "import holdfast; holdfast.open", None)
    bench.notes.append(f"optional dependencies that holdfast imports: {optional}")


def _row(bench: Bench, code: str, limit: float | None, problem: str = "") -> None:
    ours, reference = alternate(
        partial(_python, READY + code),
        partial(_python, "pass"),
        rounds=bench.amount(40, 15),
    ).medians
    measured = times(ours, reference, "empty")
    work = f"`{code}` against an empty interpreter"
    bench.rows.append(Row(work, measured, ours / reference, limit, problem=problem))


def _loaded(code: str) -> set[str]:
    """The packages in a fresh interpreter that are neither Python's nor ours."""
    known = sys.stdlib_module_names | {"holdfast"}
    return set(_python(code + MODULES).split()) - known


def _needed() -> list[str]:
    """The required dependencies; what these import is needed as well."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [re.split(r"[^\w-]", need)[0] for need in project["dependencies"]]


def _python(code: str) -> str:
    command = [sys.executable, "-I", "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
