"""Modules that keep what docs/guarantees.md promises, and the tests that notice if they do not.

A module's own tests come first. Then come tests that use the module: those of all parts of a storage node and
a client, or of the controller, and the simulation of whole systems with random faults.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

_CLIENT: Final = ("client_values", "client_homes", "client", "client_lengths", "offer")
_AWAY: Final = ("deletion_away", "deletion_forgotten")
_STORE: Final = (
    "storage_node",
    "catch_up",
    "store",
    "native_storage",
    "offer",
    "insiders",
    "deletion",
    "committed_work",
    "client/lifetimes",
    "client/hints",
    "ssd_reader",
    "storage/storage",
)

_HOSTLIB: Final = {
    "assembly": ("assembly", "native_puts", "store"),
    "block": ("block", "ssd", "store", "catch_up"),
    "catalog": ("catalog", "catch_up"),
    "catch_up": ("catch_up", "joining", "insiders", "deletion", *_AWAY, "client/lifetimes"),
    "commit": ("store_states", "commit", "ssd", "store", "offer"),
    "content": ("content", "seal"),
    "exchange": ("exchange", *_CLIENT, "expected", "other_list"),
    "fetch": (*_CLIENT, "native", "other_list"),
    "fetches": (*_CLIENT, "native", "other_list", "deletion_away"),
    "flow_window": ("lane", "native"),
    "health": ("health", "client_homes", "other_list"),
    "homes": ("homes", "members"),
    "joining": ("joining", "catch_up", "insiders", "deletion", *_AWAY),
    "missed_deletions": (*_AWAY, "joining", "insiders", "graveyard"),
    "lane": ("lane", "native", "client_homes"),
    "listing": ("listing", "catch_up"),
    "members": ("members", "homes", "catch_up", "client_homes"),
    "node_window": ("node_window", "client", "congestion"),
    "offer": ("offer", "native_puts"),
    "offers": ("offer", "native_puts", "client_homes"),
    "lookup": ("client_homes", "client_values", "client", "deletion_away", "other_list"),
    "seal": ("seal", "client_values"),
    "tombstones": ("graveyard", "deletion", *_AWAY),
    "graveyard": ("graveyard", "deletion", *_AWAY),
    "deletion": ("deletion", *_AWAY),
    "ssd": ("store_states", "ssd", "store", "power_cut"),
    "storage_node": _STORE,
    "gets": _STORE,
    "puts": _STORE,
    "replies": _STORE,
    "store": ("store_states", *_STORE),
    "unsure": ("unsure", *_AWAY, "insiders"),
    "wire": ("wire", "scapy_layer", "client_values", "late_answers"),
}
_CONTROLLER: Final = {
    "membership": ("membership", "ways", "worker"),
    "ways": ("ways",),
    "expected": ("pool",),
    "quota": ("quota",),
}

_OTHER_TESTS: Final = {
    "hostlib": ("hostlib/client", "hostlib/protocol", "hostlib/storage", "hostlib/transport"),
    "controller": ("controller", "controller/pool"),
}
"""Folders of tests that use the modules, by folder of the modules."""
_SIMULATION: Final = "tests/experiments/simulate_faults/test_simulate_faults.py"

ROOT: Final = Path(__file__).resolve().parents[2]


def _file(folder: str, name: str) -> str:
    """Return the path, from the root, of the only file of that name below a folder."""
    (found,) = (ROOT / folder).rglob(f"{name}.py")
    return str(found.relative_to(ROOT))


def _test(folder: str, test: str) -> str:
    """Return the path of a file of tests, whose name may begin with that of its folder."""
    inner, _, name = test.rpartition("/")
    return _file(f"tests/{folder}/{inner}", f"test_{name}")


_TESTS: Final = {
    _file(folder, module): (folder, tests)
    for folder, modules in (("hostlib", _HOSTLIB), ("controller", _CONTROLLER))
    for module, tests in modules.items()
}

MODULES: Final = tuple(_TESTS)
"""Files of the modules that keep the promises."""


def files_of_tests(module: str) -> tuple[str, ...]:
    """Return the files of tests of one of MODULES, the likeliest to notice a change first.

    The files exist only in a checkout.
    """
    folder, tests = _TESTS[module]
    first = [_test(folder, test) for test in tests]
    return tuple(dict.fromkeys([*first, *_other_tests(folder), _SIMULATION]))


def _other_tests(package: str) -> Iterator[str]:
    """Yield the tests that use a package's modules, without those that make a network, which take long."""
    for folder in _OTHER_TESTS[package]:
        for path in sorted((ROOT / "tests" / folder).glob("test_*.py")):
            if not path.stem.endswith("live"):
                yield str(path.relative_to(ROOT))
