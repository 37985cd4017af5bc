"""Inner names of the MCP server; needs mcp."""

from holdfast.mcp._resources import read as read_resource
