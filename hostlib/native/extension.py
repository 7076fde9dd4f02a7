"""Compiled cores: the folder of a core's C files, and the module that they define.

A core is compiled by `make setup` where there are a C compiler and Python's headers. It is absent where that
has not happened, or where WEIR_PURE=1 forbids it; then the same is done in Python.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hostlib.native.build import library


def load(module: str, path: Path) -> Any:
    """Return the module in a shared object; raises ImportError."""
    loader = ExtensionFileLoader(module, str(path))
    spec = spec_from_file_location(module, path, loader=loader)
    assert spec is not None
    made = module_from_spec(spec)
    loader.exec_module(made)
    return made


def compiled(module: str, folder: Path) -> Any | None:
    """Return the module of these sources; None where it is absent."""
    return None if os.environ.get("WEIR_PURE") == "1" else _compiled(module, folder)


@cache
def _compiled(module: str, folder: Path) -> Any | None:
    path = library(folder=folder, module=module)
    try:
        return load(module, path) if path.is_file() else None
    except ImportError:
        return None
