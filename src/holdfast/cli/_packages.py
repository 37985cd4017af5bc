"""The packages of every command, loaded without what a command hardly uses of them.

`holdfast log` takes a fifth less time so. In a program all is loaded as usual.
"""

from __future__ import annotations

import sys
from types import ModuleType

from holdfast._values import lazy

TYPE_CHECKING = False  # as in `lazy`
if TYPE_CHECKING:
    from typing import Any


def load_packages() -> None:
    """Load what takes long, before any module of ours does."""
    lazy.put_off("inspect")  # click: for help pages; dataclasses, for orjson
    lazy.put_off("textwrap")  # msgspec: for JSON schemas
    lazy.put_off("copy")  # dataclasses, for orjson
    if sys.platform == "linux":
        lazy.put_off("platform", system=_system)  # uuid, before Python 3.13
    # click: for help pages and errors. Its pattern for plurals takes long to compile.
    lazy.put_off("gettext", gettext=_gettext, ngettext=_ngettext)
    for name in ("inspect", "toml", "yaml"):
        lazy.put_off(f"msgspec.{name}")
    # From Python 3.11 on, what msgspec takes from it is the same in `typing`.
    lazy.load_with("msgspec", "typing_extensions", None)
    json: Any = ModuleType("json")  # orjson: for the base of its error
    json.JSONDecodeError = JSONError
    lazy.load_with("orjson", "json", json)


class JSONError(ValueError):
    """As `json.JSONDecodeError` for who reads it; json loads when there is one."""

    def __init__(self, message: str, text: str, position: int) -> None:
        from json import JSONDecodeError  # noqa: PLC0415 - the reason for this class

        error = JSONDecodeError(message, text, position)
        super().__init__(str(error))
        vars(self).update(vars(error))


def _system() -> str:
    return "Linux"


def _gettext(message: str) -> str:
    text: str = lazy.loaded("gettext").gettext(message)
    return text


def _ngettext(singular: str, plural: str, n: int) -> str:
    text: str = lazy.loaded("gettext").ngettext(singular, plural, n)
    return text
