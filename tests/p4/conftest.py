"""The pool's P4 program on the embedded switch in its library form: a packet in, packets out."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostlib.protocol import wire
from tests.p4.rig import Rig
from v1model.backend import CompiledProgram
from v1model.compile import compile_p4

PROGRAM = Path(__file__).resolve().parents[2] / "p4" / "weir.p4"
SIZES = {
    "POOL_SLOTS": 64,
    "POOL_BLOCKS": 16,
    "PENDING_CELLS": 64,
    "SKETCH_CELLS": 64,
    "VALUE_SIZE": wire.VALUE_BYTES,
}
ROOMY = {"POOL_SLOTS": "256", "POOL_BLOCKS": "32"}
"""Sizes for tests of whole blocks, in other folders too: one build serves them all."""


@pytest.fixture(scope="session")
def compiled() -> CompiledProgram:
    """The program with small sizes, so that collisions and bounds are within reach."""
    return compile_p4(PROGRAM, defines={name: str(size) for name, size in SIZES.items()})


@pytest.fixture(scope="session")
def compiled_with_faults() -> CompiledProgram:
    """The same with losses on request."""
    return compile_p4(PROGRAM, defines={**{name: str(size) for name, size in SIZES.items()}, "FAULTS": "1"})


@pytest.fixture
def rig(compiled: CompiledProgram) -> Rig:
    """Nodes at ports 1 to 3, a store at port 9, routes and roles as a controller installs them."""
    return Rig(compiled)
