"""What the command line, the MCP server and a viewer show, as plain documents.

Nothing here knows a terminal, a protocol or a page.
"""
