"""Captures lie in the network's own folder, which goes with it, however the run ends. Needs root."""

import os
from pathlib import Path

import pytest

from emulator.emulation import Measurements
from emulator.options import parse_options
from emulator.recording import Recording
from emulator.scenario import make_scenario
from topologies.engines import Embedded
from topologies.network import Network

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
GIVEN = ("--hosts", "1", "--stores", "1", "--requests", "5", "--scale", "40000", "--pcap", "node1")


def test_make_clean_finds_the_capture_of_a_run_that_was_killed(tmp_path: Path) -> None:
    scenario = make_scenario(parse_options((*GIVEN, "--results", str(tmp_path / "results")), "test", ""))
    found: list[Path] = []
    with Network(scenario.fabric, Embedded()) as network:

        def play() -> Measurements:
            found.extend(network.directory.glob("capture-*/pcap/*"))
            return Measurements()

        Recording(scenario, print).play(network, "pool", play)
        assert [path.suffix for path in found if path.suffix == ".pcap"] == [".pcap"]
        assert not list(network.directory.glob("capture-*"))
    assert (tmp_path / "results" / "pcap" / "pool.node1.pcapng").exists()
