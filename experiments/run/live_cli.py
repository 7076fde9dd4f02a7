"""Mininet's command line with `live`, which shows what passes through the network, also while a
host runs a command."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from mininet.cli import CLI
from mininet.node import Node
from rich.live import Live

from commands.command import LIVE_REFRESHES_PER_S, Screen
from experiments.live import Dashboard
from topologies.network import Network

POLL_S = 0.1


class LiveCli(CLI):  # type: ignore[misc] # mininet ships no types
    """A command line that runs when it is made, until `exit` or the end of the input."""

    def __init__(self, network: Network, screen: Screen, dashboard: Dashboard, shows_at_once: bool) -> None:
        self._screen, self._dashboard, self._shows_at_once = screen, dashboard, shows_at_once
        super().__init__(network.mininet)

    def preloop(self) -> None:
        """Prepare for a prompt."""
        shows, self._shows_at_once = self._shows_at_once and self._screen.can_live, False
        if shows:
            self._screen.say("Ctrl-C gives the command line.")
            self.do_live("")

    def do_live(self, line: str) -> None:
        """live: show links, pool and decisions until Ctrl-C.
        live HOST COMMAND: while a host runs a command, such as live node1 ping -c 9 store1"""
        words = line.split()
        if not self._screen.can_live:
            self._screen.warn("live needs a terminal")
        elif not words:
            with self._showing():
                while True:
                    time.sleep(POLL_S)
        elif words[0] in self.mn and len(words) > 1:
            address = {node.name: node.IP() or node.name for node in self.mn.values()}
            self._run(self.mn[words[0]], [address.get(word, word) for word in words[1:]])
        else:
            self._screen.warn(
                f"live takes a host and its command, such as node1 ping -c 9 store1, not {line!r}"
            )

    def _run(self, host: Node, command: list[str]) -> None:
        output = ""
        host.sendCmd(" ".join(command))
        with self._showing():
            while host.waiting:
                output += host.monitor(1000 * POLL_S)
        if host.waiting:
            host.sendInt()
            output += host.waitOutput()
        self._screen.console.print(output, markup=False, end="")

    @contextlib.contextmanager
    def _showing(self) -> Iterator[None]:
        console = self._screen.console
        with (
            contextlib.suppress(KeyboardInterrupt),
            Live(self._dashboard, console=console, refresh_per_second=LIVE_REFRESHES_PER_S),
        ):
            yield
