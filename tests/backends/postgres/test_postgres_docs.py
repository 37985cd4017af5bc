"""The code of docs/postgres.md that needs a server, run on one."""

from __future__ import annotations

import re
import subprocess
import sys

from support import databases, servers
from support.folders import DOCS

PAGE = (DOCS / "postgres.md").read_text()
BLOCK = re.compile(r"```py\n(.*?)```(?:\n+```text\n(.*?)```)?", re.DOTALL)
ADDRESS = "postgresql://agent@localhost/agents"


def test_the_code_of_the_page_prints_what_the_page_shows(tmp_path):
    blocks = BLOCK.findall(PAGE)
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
    assert PAGE.count(ADDRESS) == 1
