"""Plain documents that the command line, the MCP server and the viewer show.

Nothing here knows a terminal, a protocol or a page.
"""
