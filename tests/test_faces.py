"""The public face of each room: what programs and notebooks may import, and at what cost."""

import subprocess
import sys
from importlib import import_module

import pytest

FACES = {
    "controller.policies": {
        "OWN_POLICIES", "POLICY_NAMES", "Admit", "Decision", "Demoted", "Event", "Evict", "Found", "Hits",
        "HomeLoad", "Key", "Lost", "Miss", "Pin", "Policy", "PolicyError", "Unpin", "make_policy",
    },
    "controller.pool": {"Pool"},
    "emulator": {"RunResult", "play"},
    "hostlib.client": {"Client", "ClientOptions"},
    "hostlib.engine": {
        "BlockingObjects", "BlockingPool", "Item", "KeyChain", "KvPool", "KvSpace", "ObjectPool",
        "PoolConfig", "PoolStats", "open_objects", "open_pool", "open_pools",
    },
    "hostlib.protocol": {
        "BlockNotFoundError", "BlockRef", "CorruptBlockError", "FetchedBlock", "FetchedChain",
        "HostlibError", "MalformedError", "Member", "Members", "Message", "PutRefusedError", "Seal",
        "TransferError", "TransferTimeoutError", "decode", "encode", "home_of", "home_order", "seal_of",
    },
    "simulator": {"SimResult", "simulate"},
    "v1model": {"CompileError", "Switch", "compile_p4"},
    "weir.results": {"Play", "Results", "ResultsError", "load"},
}  # fmt: skip
"""Taking a name away, or giving it another meaning, is for a major version (docs/stability.md)."""
HEAVY = ("numpy", "mininet", "pydantic", "grpc", "plotly", "matplotlib", "distributed", "mypy", "scapy")


@pytest.mark.parametrize("room", FACES)
def test_a_face_has_these_names_and_each_is_there(room: str) -> None:
    module = import_module(room)
    assert set(module.__all__) == FACES[room]
    for name in FACES[room]:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        module.nothing  # noqa: B018


def imported_by(code: str) -> set[str]:
    """Return the heavy packages that code imports."""
    asked = f"import sys\n{code}\nprint(*(set({HEAVY}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import controller.pool, emulator, hostlib.client, hostlib.protocol, simulator, v1model",
        "from hostlib.client import Client, ClientOptions; from hostlib.protocol import *",
        "from v1model import compile_p4, Switch",
    ],
    ids=["rooms", "client", "switch"],
)
def test_what_a_face_does_not_need_is_not_imported(code: str) -> None:
    assert not imported_by(code)


def test_a_simulation_needs_no_network() -> None:
    assert "mininet" not in imported_by("from simulator import simulate")
