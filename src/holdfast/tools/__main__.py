"""Prints the reference of the tools, which docs/tools.md ends with."""

import sys

from holdfast.tools import TOOLS
from holdfast.tools._reference import reference

sys.stdout.write(reference(TOOLS))
