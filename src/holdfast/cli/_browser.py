"""Opening a page with a secret address in the user's browser."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
import webbrowser
from html import escape
from pathlib import Path

PAGE = '<!doctype html><meta http-equiv="refresh" content="0; url={}">'


def open_browser(url: str) -> None:
    """Open a page by way of a file that only this user can read.

    Other users of the machine see the arguments of all programs: the address, which has
    the token, must not be one. The file is removed when this program ends.
    """
    folder = tempfile.mkdtemp(prefix="holdfast-viewer-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = Path(folder, "viewer.html")
    file.touch(mode=0o600)
    file.write_text(PAGE.format(escape(url, quote=True)), encoding="utf-8")
    # A browser in the terminal does not return before it is closed.
    opening = threading.Thread(target=webbrowser.open, args=(file.as_uri(),))
    opening.daemon = True
    opening.start()
