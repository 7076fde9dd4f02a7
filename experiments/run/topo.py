"""make topo: a topology with switch and controller running, and Mininet's CLI.

Takes the options of make run that describe the network. `exit` or Ctrl-D ends everything.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mininet.cli import CLI
from mininet.log import setLogLevel
from rich.console import Console

from experiments.run.__main__ import BAD_INPUT, PROGRAM
from experiments.run.control_plane import start_controller
from experiments.run.modes import MODES
from experiments.run.options import parse_options
from experiments.run.processes import READY_TIMEOUT_S, wait_for
from experiments.run.scenario import Scenario, controller_config, make_scenario
from topologies.engines import make_engine
from topologies.network import Network, check_root


def main(arguments: Sequence[str]) -> int:
    """Exit code 2 when it could not start."""
    console = Console(highlight=False)
    try:
        options = parse_options(arguments, "python -m experiments.run.topo", __doc__ or "")
        check_root()
        engine = make_engine(options.engine)
        scenario = make_scenario(options)
        with Network(scenario.fabric, engine, secure=options.secure) as network:
            artifacts = engine.compile(PROGRAM, scenario.defines, network.directory)
            network.start_switches()
            config = controller_config(scenario, network, artifacts, MODES["pool"])
            controller = start_controller(config, network, network.directory)
            wait_for("ready", [controller], controller.events, READY_TIMEOUT_S)
            describe(console, scenario, network)
            setLogLevel("output")
            CLI(network.mininet)
    except BAD_INPUT as error:
        console.print(f"[bold red]error:[/] {error}", soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started has ended")
        return 130
    return 0


def describe(console: Console, scenario: Scenario, network: Network) -> None:
    """What runs where, and what to try."""
    fabric = scenario.fabric
    for switch in fabric.switches:
        behind = ", ".join(f"{port.number}: {port.peer}" for port in fabric.ports(switch))
        console.print(
            f"{switch}  device {fabric.device_id(switch)}  P4Runtime {network.address(switch)}  {behind}"
        )
    for name, endpoint in fabric.hosts.items():
        console.print(f"{name:8} {endpoint.ipv4}  {endpoint.mac}")
    switch = fabric.switches[0]
    console.print(
        f"Try: pingall, node1 ping store1, {switch} tcpdump -ni {switch}-eth1; "
        "`make shell` in another terminal."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
