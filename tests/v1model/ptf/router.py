"""PTF tests of router.p4, run by ptf and not by pytest. Test parameters: cli, the command that gives
simple_switch_CLI's commands to the switch (words separated by blanks)."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import ptf.testutils as testutils
from ptf.base_tests import BaseTest

if TYPE_CHECKING:
    from scapy.packet import Packet

HERE, HOST = "00:00:00:00:00:01", "00:00:00:00:00:02"


class Router(BaseTest):  # type: ignore[misc]  # ptf ships no types
    """A route to 10.0.1.0/24 by port 2, its .7 by port 1; both are gone afterwards."""

    def setUp(self) -> None:
        super().setUp()
        self.dataplane = testutils.ptf.dataplane_instance
        self.dataplane.flush()
        self.switch(
            f"table_add route to 10.0.1.0/24 => 2 {HOST}\ntable_add route to 10.0.1.7/32 => 1 {HOST}\n"
        )

    def tearDown(self) -> None:
        self.switch("table_clear route\n")
        super().tearDown()

    def switch(self, commands: str) -> None:
        command = testutils.test_param_get("cli").split()
        subprocess.run(command, input=commands, text=True, check=True, timeout=60)

    def send(self, address: str, ttl: int = 64) -> Packet:
        """Into port 1. The packet that a router makes of it."""
        testutils.send_packet(self, 1, testutils.simple_tcp_packet(eth_dst=HERE, ip_dst=address, ip_ttl=ttl))
        return testutils.simple_tcp_packet(eth_src=HERE, eth_dst=HOST, ip_dst=address, ip_ttl=ttl - 1)


class PacketsFollowTheirRoute(Router):
    def runTest(self) -> None:
        testutils.verify_packets(self, self.send("10.0.1.9"), [2])


class TheLongestPrefixWins(Router):
    def runTest(self) -> None:
        testutils.verify_packets(self, self.send("10.0.1.7"), [1])


class WithoutARouteNothingLeaves(Router):
    def runTest(self) -> None:
        self.send("10.0.2.1")
        testutils.verify_no_other_packets(self)


class PacketsThatExpireAreDropped(Router):
    def runTest(self) -> None:
        self.send("10.0.1.9", ttl=1)
        testutils.verify_no_other_packets(self)
