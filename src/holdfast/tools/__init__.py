"""The tools with which a model keeps and recalls agents, conversations, checkpoints.

Each is described once, for OpenAI, Anthropic, MCP and as a plain function.
"""

from holdfast.tools._tool import Tool
from holdfast.tools._toolset import TOOLS, AsyncToolset, Toolset

__all__ = ["TOOLS", "AsyncToolset", "Tool", "Toolset"]
