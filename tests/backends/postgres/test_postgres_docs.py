"""The code of pages that needs a server, run on one."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from support import databases, servers
from support.folders import DOCS

PAGES = [DOCS / "postgres.md", DOCS / "howto" / "postgresql.md"]
BLOCK = re.compile(r"```py\n(.*?)```(?:\n+```text\n(.*?)```)?", re.DOTALL)
ADDRESS = "postgresql://agent@localhost/agents"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_code_of_a_page_prints_what_the_page_shows(path, tmp_path):
    page = path.read_text()
    blocks = BLOCK.findall(page)
    shown = "".join(output for _, output in blocks)
    with databases.database(servers.shared(servers.NAMES[-1])) as url:
        program = "\n".join(code for code, _ in blocks).replace(ADDRESS, url)

        ran = subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )

    assert ran.stdout == shown
    assert program.count(url) == 1
