"""Inner names of the tools for models."""

from holdfast.tools._bounds import LARGEST
from holdfast.tools._errors import Refusal
from holdfast.tools._reference import overview
from holdfast.tools._toolset import STORE_TOOLS
