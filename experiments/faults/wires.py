"""Insertion of a shim (`experiments.faults.shim`) into each link between a switch and a host."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial

from emulator.processes import READY_TIMEOUT_S, LineProcess
from experiments.faults.children import wait_for_event
from topologies.errors import TopologyError
from topologies.network import Network

_INSERT = """
ip link set {port} down
ip link set {port} name {port}w
ip link add {port} type veth peer name {port}s
ethtool -K {port} tx off rx off gro off >/dev/null
ethtool -K {port}s tx off rx off gro off >/dev/null
ip link set {port}w up
ip link set {port}s up
ip link set {port} up
"""
_REMOVE = """
ip link del {port}
ip link set {port}w down
ip link set {port}w name {port}
ip link set {port} up
"""


class Wires:
    """Shims of a network, one for each switch that has hosts."""

    def __init__(self, shims: Sequence[LineProcess]) -> None:
        self._shims = shims

    def damage(self, only: str | None = None, /, **shares: float) -> None:
        """Damage frames from now on, in each direction, on all links or on the link at the interface `only`.

        `shares` are those of `experiments.faults.shim`; without any, links are undamaged again.
        """
        command: dict[str, object] = {**shares, "only": f"{only}w"} if only else {**shares}
        for shim in self._shims:
            shim.send(json.dumps(command))


@contextlib.contextmanager
def shimmed(network: Network, seed: int) -> Iterator[Wires]:
    """Put shims into the links during the `with` block, which must begin while no switch runs.

    Raises TopologyError or ProcessError.
    """
    with contextlib.ExitStack() as stack:
        shims = []
        for number, switch in enumerate(network.fabric.switches):
            ports = [
                f"{switch}-eth{port.number}"
                for port in network.fabric.ports(switch)
                if port.peer in network.fabric.hosts
            ]
            if not ports:
                continue
            for port in ports:
                stack.callback(_run, network, switch, _REMOVE.format(port=port))
                _run(network, switch, _INSERT.format(port=port))
            pairs = [f"{port}w:{port}s" for port in ports]
            command = [sys.executable, "-m", "experiments.faults.shim", str(seed + number), *pairs]
            log = network.directory / f"{switch}.shim.log"
            shim = LineProcess(f"shim of {switch}", command, log, partial(network.popen, switch))
            stack.callback(shim.stop)
            shims.append(shim)
        wait_for_event("ready", shims, READY_TIMEOUT_S)
        yield Wires(shims)


def _run(network: Network, switch: str, script: str) -> None:
    output = network.mininet[switch].cmd(script.strip().replace("\n", " && ")).strip()
    if output:
        raise TopologyError(f"{switch}: {output}")
