"""Where a host's or a switch's traffic is captured."""

import pytest

from emulator.capture import CaptureError, CapturePlace, place_of
from emulator.options import parse_options
from emulator.recording import Recording
from emulator.scenario import make_scenario
from topologies.registry import make_topology


def test_a_host_is_seen_at_the_other_end_of_its_cable_and_a_switch_at_all_of_its_ports() -> None:
    fabric = make_topology("star", 1e9, 3, 2)
    assert place_of(fabric, "node2") == CapturePlace("s1", 2)
    assert place_of(fabric, "store1").interface == "s1-eth4"
    assert place_of(fabric, "s1").interface == "any"


def test_what_does_not_exist_is_refused_before_anything_runs_and_says_what_there_is() -> None:
    options = parse_options(["--pcap", "node1,node9", "--requests", "5"], "run", "")
    with pytest.raises(CaptureError, match=r"PCAP: there is no 'node9' in this topology: there are node1, "):
        Recording(make_scenario(options), print)
