"""Runs the code of a page of the documentation, all blocks as one program.

usage: page_code.py PAGE FOLDER

Most of the time of a page was the import of what every page needs. It is loaded here,
once for all forks, by using it.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import holdfast
from support.pages import code_of

# As for readers: a framework that warns of its own future does not fail a page.
warnings.simplefilter("ignore")

with holdfast.open(":memory:") as warm:
    warm.thread("chat").append(messages=[{"role": "user", "content": "Hello"}])
    warm.conversations.create("talk", messages=[{"role": "user", "content": "Hello"}])

if __name__ == "__main__":
    page, folder = sys.argv[1:]
    os.chdir(folder)
    program = compile(code_of(Path(page)), page, "exec", dont_inherit=True)
    exec(program, globals())
