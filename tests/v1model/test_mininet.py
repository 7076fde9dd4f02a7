"""The embedded switch as a Mininet node. Needs root."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.root
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

CROSS = """
#include <core.p4>
#include <v1model.p4>
struct none_t { }
parser P(packet_in p, out none_t h, inout none_t m, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control C(inout none_t h, inout none_t m) { apply { } }
control I(inout none_t h, inout none_t m, inout standard_metadata_t sm) {
    apply { if (sm.ingress_port == 1) { sm.egress_spec = 2; } else { sm.egress_spec = 1; } }
}
control E(inout none_t h, inout none_t m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in none_t h) { apply { } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


def test_the_rest_of_v1model_does_without_mininet() -> None:
    code = "import sys, v1model.switch, v1model.cli, v1model.p4c; sys.exit('mininet' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@needs_root
def test_two_hosts_ping_through_it(tmp_path: Path) -> None:
    from mininet.net import Mininet
    from mininet.topo import SingleSwitchTopo

    from v1model.mininet import P4Host, P4Switch

    (tmp_path / "cross.p4").write_text(CROSS)
    options = ("--pcap", str(tmp_path / "pcap"))
    switch = partial(P4Switch, program=tmp_path / "cross.p4", options=options)
    net = Mininet(SingleSwitchTopo(2), host=P4Host, switch=switch, controller=None)
    try:
        net.start()
        assert net["h1"].cmd(f"ping -c 2 -i 0.2 -W 5 {net['h2'].IP()}").count("bytes from") == 2
        assert not net["s1"].address.endswith(":0")
    finally:
        net.stop()
    assert {path.name for path in (tmp_path / "pcap").iterdir()} == {
        f"s1-eth{port}_{way}.pcap" for port in (1, 2) for way in ("in", "out")
    }


@needs_root
def test_a_switch_that_does_not_start_says_why(tmp_path: Path) -> None:
    from mininet.net import Mininet
    from mininet.topo import Topo

    from v1model.mininet import P4Switch, SwitchError

    (tmp_path / "wrong.p4").write_text("nonsense;\n")
    switch = partial(P4Switch, program=tmp_path / "wrong.p4")
    topo = Topo()
    # A switch's interfaces are in the root namespace: other names than those of the test above.
    topo.addLink(topo.addHost("h9"), topo.addSwitch("s9"))
    net = Mininet(topo, switch=switch, controller=None)
    try:
        with pytest.raises(SwitchError, match=r"s9: .*wrong\.p4:1:"):
            net.start()
    finally:
        net.stop()
