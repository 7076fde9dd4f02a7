"""Compiled core of the simulator: which modules mypyc compiles, where the build is, and whether it is used.

`make compiled` (`python -m experiments.simulate.compile`) makes extensions of the Python files named here.
Those files stay the only source. A build belongs to one version of them, of what they import, of mypy and of
Python. It is in a folder of the environment, and is used only if all of these match. The same files run in
Python if there is no build, with WEIR_PURE=1, with WEIR_COMPILED=0, or if one of the modules was imported
before this one. Results are the same to the last bit (tests/simulator/test_compiled.py).

Compiled modules call each other without Python's interpreter, so either all of them are compiled or none is.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
GROUP = "weir_simulator"
LIBRARY = f"{GROUP}__mypyc"
"""mypyc's name for the extension that has all the code; each module's own extension only refers to it."""
SUFFIX = EXTENSION_SUFFIXES[0]
FLAGS = (
    "-O2",
    "-g0",
    "-ffp-contract=off",  # results must equal Python's to the last bit
    "-Wno-error",  # warnings about mypyc's C code don't concern those who build it
)
_PLAIN = (
    "checks",
    "compiled",
    "expected",
    "machine_costs",
    "measured",
    "money",
    "outcome",
    "result",
    "spread",
)
"""Modules of the simulator that stay in Python. Results and their distributions are sent between processes,
which is impossible for objects of compiled classes; the others take hardly any time."""
_POOL = (
    "block_history decisions free_runs governor hit_meter known_blocks pool quota residual_value slots "
    "index_update"
)


def _modules_in(package: str, besides: Sequence[str] = ()) -> list[str]:
    """Return the sorted names of all modules in a package except `__init__` and `besides`."""
    found = sorted(path.stem for path in (ROOT / package.replace(".", "/")).glob("*.py"))
    return [f"{package}.{name}" for name in found if name not in ("__init__", *besides)]


MODULES = (
    *(f"controller.pool.{name}" for name in _POOL.split()),
    *_modules_in("simulator", _PLAIN),
    *_modules_in("simulator.emulated"),
    "hostlib.client.backlogs",
    "hostlib.model.eviction",
    "hostlib.model.gate",
    "hostlib.model.remaining",
    "hostlib.model.tiers",
    "hostlib.native.flow_window",
    "hostlib.protocol.homes",
    "workload.generate",
    "workload.recency",
    "workload.schedule",
)
"""Modules in which a simulation spends its time: the simulator, and what it uses for each block."""

CONSTANTS = ("controller.p4runtime.base_state", "controller.config", "hostlib.protocol.wire")
"""Modules that are not compiled, but whose constants (Final) are compiled in."""

KNOWN = ("commands", "controller", "simulator", "scenario", "hostlib", "topologies", "workload")
"""Folders whose files are a build's sources, compiled or not, as the C code relies on the types in all
imports. A test compares them with the imports."""
KNOWN_FILES = ("v1model/binding/digests.py",)
FROM = "WEIR_COMPILED_FROM"
"""Environment variable with the folder of a build to use instead: one that has not been compared yet."""


def source(module: str) -> Path:
    """Return the file of a module."""
    return ROOT / f"{module.replace('.', '/')}.py"


def sources() -> list[str]:
    """Return the files that a build belongs to, relative to the root."""
    found = [name for name in KNOWN_FILES if (ROOT / name).exists()]  # weir-switch may be elsewhere
    for top in KNOWN:
        for path, folders, names in os.walk(ROOT / top):
            folders[:] = [name for name in folders if name != "__pycache__"]
            kept = [name for name in names if name.endswith(".py") and not name.startswith(".")]
            found += [f"{path[len(str(ROOT)) + 1 :]}/{name}" for name in kept]
    return sorted(found)


def folder() -> Path:
    """Return the folder of the build of the current sources, whether it exists or not; takes 4 ms at each
    start."""
    digest = hashlib.sha256(" ".join((sys.version, *FLAGS, *MODULES, _mypy())).encode())
    for name in sources():
        content = (ROOT / name).read_bytes()
        digest.update(b"%s\0%d\0" % (name.encode(), len(content)) + content)
    return Path(sys.prefix) / "lib" / "weir" / f"{GROUP}-{digest.hexdigest()[:20]}"


def _mypy() -> str:
    """Return the pinned version of mypy, as two versions may compile a file differently; "" outside a
    checkout."""
    lock = ROOT / "requirements-all.lock"  # only in a checkout
    pinned = re.search(r"^mypy==\S+", lock.read_text(), re.MULTILINE) if lock.exists() else None
    return pinned[0] if pinned else ""


def in_use() -> bool:
    """Return whether the simulator runs compiled in this process."""
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


def core() -> str:
    """Return "compiled" or "Python", whichever runs here, for results."""
    return "compiled" if in_use() else "Python"


def engine() -> str:
    """Return the words for the simulator that pages and summaries show as the origin of their figures."""
    return "simulator, compiled" if in_use() else "simulator, in Python"


def use() -> None:
    """Import the modules from the build from now on, if that is possible."""
    refused = os.environ.get("WEIR_PURE") == "1" or os.environ.get("WEIR_COMPILED") == "0"
    if refused or in_use() or any(module in sys.modules for module in MODULES):
        return
    asked_for = os.environ.get(FROM)
    built = Path(asked_for) if asked_for else folder()
    if not built.is_dir():
        return
    try:
        _load(LIBRARY, built)
    except ImportError:  # built for another machine's Python: treated as absent
        if asked_for:
            raise
        return
    with contextlib.suppress(OSError):  # another user's, or read-only
        os.utime(built)  # marks the build as used
    sys.meta_path.insert(0, _Finder(built))


class _Finder(MetaPathFinder):
    """Finder of the compiled modules, which Python asks before it looks for their sources."""

    def __init__(self, built: Path) -> None:
        self._built = built

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Return the spec of a compiled module, None for any other."""
        if fullname not in MODULES:
            return None
        return spec_from_file_location(fullname, self._built / f"{fullname}{SUFFIX}")


def _load(name: str, built: Path) -> None:
    """Import the library by its name, under which the modules' own extensions look for it."""
    spec = spec_from_file_location(name, built / f"{name}{SUFFIX}")
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
