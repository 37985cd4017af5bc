"""Kills the loop of docs/loop.md before its lines and at the writes of its store.

usage: loop_on_the_page.py FOLDER blocking|awaited PLACE LINES WRITES

The text of the page is run as it stands. PLACE is what it opens instead of a file: a
file, with ``dir:`` in front a folder, or the address of a PostgreSQL server. Before each
LINES-th line that is executed, and at each WRITES-th write, sync, truncate, delete and
rename, a process is killed; 0 means at none. Lines of tools are never left out, if any
are taken. Killed, the program is started again, killed once more at half the way, and
started again until it is done. One line of JSON: how often it was killed, how many calls
were left unknown, and what was wrong.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from types import CodeType, FrameType
from typing import Any

from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter

import holdfast
from holdfast._api.open import Opening
from holdfast._api.options import OpenOptions, context_over
from holdfast._messages.dialects import INTERRUPTED
from holdfast.faults import Call, Fault, FaultyDisk, kill
from support.children import Child, report
from support.folders import DOCS
from support.scenario import address, lazy_disk
from support.transcripts import problems

Tell = Callable[[object], None]

PAGE = "loop.md"
CONVERSATION = "refunds"
ORDERS = ["4812", "4813"]
TOOLS = {"look_up", "refund", "send_mail"}
OPENED = {"blocking": "holdfast.open(", "awaited": "holdfast.open_async("}
CHAT = TypeAdapter(list[ChatCompletionMessageParam])


def program(door: str) -> CodeType:
    """The tools and one of the two loops, exactly as the page has them."""
    text = (DOCS / PAGE).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    tools = next(block for block in blocks if "def ask_model(" in block)
    loop = next(block for block in blocks if OPENED[door] in block)
    return compile(tools + loop, PAGE, "exec")
