"""The README for the page of a package index, where relative links are dead.

The addresses come from `[project.urls]` of pyproject.toml, the only place for them:
`Source` for files and `Raw` for pictures, each the folder in which the README lies.
Without `Source`, links become plain text, and without `Raw`, pictures are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"!\[([^\]]*)\]\((?![a-z]+:)([^)]+)\)\n*")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?![a-z]+:|#)([^)]+)\)")


class AbsoluteLinks(MetadataHookInterface):
    """Called by hatchling when it makes the metadata of a package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the text that describes the package."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = with_addresses(readme, metadata.get("urls", {}))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def with_addresses(readme: str, addresses: dict[str, str]) -> str:
    """A README whose links and pictures are absolute, or not there."""
    source = addresses.get("Source", "").rstrip("/")
    raw = addresses.get("Raw", "").rstrip("/")
    pictures = PICTURE.sub(rf"![\1]({raw}/\2)\n\n" if raw else "", readme)
    return LINK.sub(rf"[\1]({source}/\2)" if source else r"\1", pictures)
