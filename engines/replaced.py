"""Functions and classes of a program's own that stand in the place of an engine's ("monkey patches")."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath
from types import FunctionType
from typing import Any, Final

OURS: Final = "engines"
"""Package of the connectors, which listen at some of the engines' methods."""
MAKERS: Final = ("huggingface_hub", "pydantic", "typing_extensions")
"""Packages that write methods into others' classes."""
PROGRAMS: Final = ("__main__", "__mp_main__")
INSTALLED: Final = {"dist-packages", "site-packages"}
"""Folders of installed packages, whose functions the engines' modules import or decorate theirs with."""


def loaded_modules(*packages: str) -> list[str]:
    """Return the names of the modules of these packages that are imported by now."""
    return [
        name
        for name in list(sys.modules)
        if any(name == package or name.startswith(f"{package}.") for package in packages)
    ]


def replaced_functions(modules: Iterable[str], is_known: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """Yield each function and class in these modules, and method in theirs, that other code defines.

    With each comes the name of the module that does. In a module, that is one of no installed package, and in
    a class also one of a package that is not known. Wrappers count as what they are, not as what they wrap.
    """
    for name in modules:
        module = sys.modules.get(name)
        for attribute, value in [] if module is None else list(vars(module).items()):
            origin = _origin(value)
            if origin is not None and not _is_installed(origin):
                yield f"{name}.{attribute}", origin
            for method, code in list(vars(value).items()) if _is_class_of(value, name) else ():
                origin = _origin(code)
                said = str(getattr(_function(code), "__module__", None) or "")
                if origin is not None and not _is_installed(origin):
                    yield f"{name}.{attribute}.{method}", origin
                elif said in sys.modules and not (_is_pythons(said) or _is_maker(said) or is_known(said)):
                    yield f"{name}.{attribute}.{method}", said


def _is_class_of(value: Any, module: str) -> bool:
    return isinstance(value, type) and value.__module__ == module


def _origin(code: Any) -> str | None:
    """Return the module that defines a class, function or method; None for others, or if Python made it."""
    function = _function(code)
    module = (
        code.__module__ if isinstance(code, type) else getattr(function, "__globals__", {}).get("__name__")
    )
    if module not in sys.modules:
        return None
    return _full_name(module)


def _full_name(module: str) -> str:
    """Return the name of a module, also of the program if that was started by its name (-m)."""
    started = getattr(sys.modules.get(module), "__spec__", None)
    return str(started.name if module in PROGRAMS and started is not None else module)


def _function(code: Any) -> FunctionType | None:
    """Return the function of a method or property; None for other attributes."""
    inner = code.fget if isinstance(code, property) else code
    inner = inner.__func__ if isinstance(inner, classmethod | staticmethod) else inner
    return inner if isinstance(inner, FunctionType) else None


def _is_installed(module: str) -> bool:
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return module not in PROGRAMS and (_is_pythons(module) or bool(INSTALLED & set(PurePath(file).parts)))


def _is_pythons(module: str) -> bool:
    """Return whether a module is of Python itself, or of the connectors."""
    package = module.partition(".")[0]
    is_ours = _full_name(module).partition(".")[0] == OURS
    return is_ours or (package in sys.stdlib_module_names and package not in PROGRAMS)


def _is_maker(module: str) -> bool:
    return module.partition(".")[0] in MAKERS
