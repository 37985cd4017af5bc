"""Prints the reference of the tools, which is the end of docs/tools.md."""

import sys

from holdfast.tools import TOOLS
from holdfast.tools._reference import reference

sys.stdout.write(reference(TOOLS))
