"""Modules and patterns that a command line loads when they are first used.

In a package with ``__getattr__ = lazy_modules(__name__)``, the statement
``from package import module`` binds a stand-in. So `holdfast log` does not load what
saves, prunes or merges: it needs two fifths of the modules. A regular expression can
take longer to compile than its module to load; `lazy_pattern` gives a stand-in for it.
What other packages import and seldom use, `put_off` and `load_with` keep from them.

Only in a process that is a command line. A program may fork while another thread loads
a module, and the child would wait for that thread for ever; so a program has loaded all
when it has opened a store.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False  # as in the package itself: typing takes longer than the rest
if TYPE_CHECKING:
    import re
    from typing import Any, AnyStr

# Whether this process is a command line.
_is_lazy = False
_taking_back = allocate_lock()


def load_lazily() -> None:
    """Load modules when they are used; call it before anything else is imported."""
    global _is_lazy  # noqa: PLW0603 - a fact about the process
    _is_lazy = True


def load_now(*names: str) -> None:
    """Load modules that are imported within functions, unless loading is lazy."""
    if not _is_lazy:
        for name in names:
            import_module(name)


def lazy_module(name: str) -> Any:
    """A module, or a stand-in for it."""
    return LazyModule(name) if _is_lazy else import_module(name)


def put_off(name: str, **known: object) -> None:
    """Have every ``import name`` give a stand-in, unless the module is loaded already.

    Not for a package. ``known`` are attributes that can be had without loading it.
    """
    if _is_lazy and name not in sys.modules:
        stand_in: Any = LazyModule(name, known)
        sys.modules[name] = stand_in


def loaded(name: str) -> Any:
    """A module that was put off, itself."""
    found: Any = sys.modules[name]
    if isinstance(found, LazyModule):
        # A name without an underscore could be one of the module's.
        return found._load()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return found


def load_with(package: str, name: str, stand_in: ModuleType | None) -> None:
    """Load a package to which an import of a module gives a stand-in.

    With ``None`` that import fails. For all others, the module is as usual.
    """
    modules: dict[str, Any] = sys.modules
    if not _is_lazy or name in modules:
        return
    modules[name] = stand_in
    try:
        import_module(package)
    finally:
        del modules[name]


class LazyModule:
    """A stand-in for a module, which it loads for the first attribute."""

    __slots__ = ("__dict__", "_name")
    __spec__ = None  # an `import` looks at it, which must not load the module
    _name: str

    def __init__(self, name: str, known: Mapping[str, object] | None = None) -> None:
        object.__setattr__(self, "_name", name)
        self.__dict__.update(known or {})

    def __repr__(self) -> str:
        return f"<module {self._name}, loaded when it is used>"

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "__path__":  # `from name import` asks whether it is a package
            raise AttributeError(attribute)
        return getattr(self._load(), attribute)

    def __setattr__(self, attribute: str, value: object) -> None:
        setattr(self._load(), attribute, value)

    def __delattr__(self, attribute: str) -> None:
        delattr(self._load(), attribute)

    def _load(self) -> ModuleType:
        modules: dict[str, Any] = sys.modules
        with _taking_back:  # or a second thread could take away what the first loads
            if modules.get(self._name) is self:
                del modules[self._name]
        module = import_module(self._name)  # waits for another thread that loads it
        # A lookup then finds the globals of the module at once.
        object.__setattr__(self, "__dict__", module.__dict__)
        return module


def lazy_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """A regular expression, or a stand-in for it."""
    stand_in: Any = LazyPattern(text, flags)
    found: re.Pattern[AnyStr] = stand_in if _is_lazy else stand_in.compiled()
    return found


class LazyPattern:
    """A stand-in for a pattern, which it compiles for the first attribute."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(self.compiled(), attribute)
        setattr(self, attribute, found)
        return found

    def compiled(self) -> re.Pattern[Any]:
        """The pattern; the standard library keeps it."""
        import re  # noqa: PLC0415 - a command without patterns does not need it

        return re.compile(self._text, self._flags)


def lazy_modules(package: str, *homes: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package whose modules are loaded when they are used.

    What the package lists in ``__all__`` and does not have itself is looked for in the
    modules ``homes``, in this order.
    """

    def found(name: str) -> Any:
        if homes and name in sys.modules[package].__all__:
            for home in homes:
                module = import_module(f"{package}.{home}")
                if hasattr(module, name):
                    return getattr(module, name)
        if not _is_lazy or name.startswith("__"):  # what Python asks packages for
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return LazyModule(f"{package}.{name}")

    return found
