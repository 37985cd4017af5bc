"""A viewer for the browser: any step of any agent, over any store.

``holdfast serve`` starts it. Needs the extra: ``pip install 'holdfast[serve]'``.
"""

from __future__ import annotations

from holdfast._api.plugins import import_extra

for _module in ("starlette", "uvicorn", "jinja2"):
    import_extra(_module, "the viewer", "serve")

from holdfast.viewer.app import ViewerOptions, app  # noqa: E402 - see above
from holdfast.viewer.export import export_html, notebook_html  # noqa: E402
from holdfast.viewer.serving import ListenOptions, serve_viewer  # noqa: E402

__all__ = [
    "ListenOptions",
    "ViewerOptions",
    "app",
    "export_html",
    "notebook_html",
    "serve_viewer",
]
