"""Tools with which a model saves and loads agents, conversations and checkpoints.

Each is described once, for OpenAI, Anthropic, MCP and as a plain function.
"""

from holdfast.tools._tool import Tool
from holdfast.tools._toolset import TOOLS, AsyncToolset, Toolset

__all__ = ["TOOLS", "AsyncToolset", "Tool", "Toolset"]
