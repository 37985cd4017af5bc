"""The packages that are published, and an environment with nothing but the wheel."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from support.folders import ROOT

BUILD = [sys.executable, "-m", "hatchling", "build", "-d"]
VENV = [sys.executable, "-m", "venv", "--without-pip"]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
PINNED = ["--constraint", str(ROOT / "requirements-run.txt")]


def packages(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source archive of a folder."""
    [wheel], [archive] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, archive


def installed_alone(folder: Path) -> Path:
    """The programs of an environment with the wheel alone, made once in a folder.

    The packages are in the folder `dist` beside it.
    """
    alone, dist = folder / "alone", folder / "dist"
    with open(folder / "alone.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            subprocess.run([*BUILD, dist], cwd=ROOT, check=True, capture_output=True)
            subprocess.run([*VENV, alone], check=True)
            install = ["--python", alone, "install", *PINNED, packages(dist)[0]]
            subprocess.run([*PIP, *install], check=True)
            (folder / "ready").touch()
    return alone / ("Scripts" if os.name == "nt" else "bin")


def environment_of(programs: Path) -> dict[str, str]:
    """What a person has who works in such an environment."""
    kept = {n: v for n, v in os.environ.items() if not n.startswith("PYTHON")}
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    # As on a terminal, a line is written when it ends.
    return kept | {"PATH": path, "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}
