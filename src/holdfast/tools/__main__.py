"""Prints the reference of the tools, which is the end of docs/tools.md."""

import sys

from holdfast.tools._reference import reference
from holdfast.tools._toolset import STORE_TOOLS, TOOLS

sys.stdout.write(reference((*TOOLS, *STORE_TOOLS)))
