"""P4Info is as in the outputs that p4c has checked in for its samples.

P4C_SOURCE=/path/to/p4lang/p4c pytest -m slow tests/v1model/p4info/test_p4c_outputs.py
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

from v1model.errors import CompileError
from v1model.frontend import load
from v1model.midend import lower
from v1model.p4info import p4info
from v1model.protos.p4.config.v1 import p4info_pb2

TESTDATA = Path(os.environ.get("P4C_SOURCE", "nowhere")) / "testdata"
SAMPLES, OUTPUTS = TESTDATA / "p4_16_samples", TESTDATA / "p4_16_samples_outputs"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not OUTPUTS.is_dir(), reason="P4C_SOURCE does not name p4c's sources"),
]
# Externs of their own, arrays of numbers, other architectures, a register of structs: `What stays out` in
# docs/embedded-switch.md.
MOST_REFUSED = 13


def expected() -> list[tuple[Path, Any]]:
    """Each sample for v1model that p4c has an output for, and the P4Info in it."""
    pairs = []
    for output in sorted(OUTPUTS.rglob("*.p4info.txtpb")):
        name = output.name.removesuffix(".p4info.txtpb")
        sample = SAMPLES / output.relative_to(OUTPUTS).with_name(name)
        info = text_format.Parse(output.read_text(), p4info_pb2.P4Info())
        if info.pkg_info.arch == "v1model" and sample.exists():
            pairs.append((sample, info))
    return pairs


def as_text(info: Any) -> str:
    """The message without the order of its actions: p4c's inliner changes that of actions called by name."""
    info.actions.sort(key=lambda action: action.preamble.id)
    return text_format.MessageToString(info)


def test_p4info_is_p4c_s() -> None:
    refused, other = [], []
    for sample, info in expected():
        try:
            own = p4info(lower(load(sample, [sample.parent]), sample.name))
        except CompileError:
            refused.append(sample.name)
            continue
        if as_text(own) != as_text(info):
            other.append(sample.name)
    assert other == []
    assert len(refused) <= MOST_REFUSED, refused
