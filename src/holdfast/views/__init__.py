"""What the command line, the MCP server and a viewer show, as plain documents.

Nothing here knows a terminal, a protocol or a page.
"""

from holdfast._values.lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
