"""make faults, one short case on a real network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from experiments.faults.__main__ import LINK_BIT_S, compile_program, play
from experiments.faults.options import parse_options
from topologies.engines import Embedded
from topologies.network import Network
from topologies.registry import make_topology

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
    pytest.mark.xdist_group("faults"),
]


def test_a_storage_node_is_killed_under_load_and_nothing_fails_is_wrong_or_lost(tmp_path: Path) -> None:
    arguments = ["--seconds", "3", "--rate", "20", "--fragments", "4", "--results", str(tmp_path)]
    options = parse_options(arguments, "", "")
    with Network(make_topology("star", LINK_BIT_S, 2, 3), Embedded()) as network:
        result = play(network, compile_program(network, options.fragments), options, "storage_killed")
    assert result.operations == 2 * 3 * 20
    assert result.missed(may_fail=False, may_refuse=False) == []
    assert result.recover_s < options.seconds
