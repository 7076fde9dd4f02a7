"""make topo: a topology with switch and controller running, and Mininet's CLI.

It takes those options of make run that describe the network. `exit` or Ctrl-D ends everything; `live` shows
what passes, LIVE=1 from the start.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

from pydantic.dataclasses import dataclass

from commands.command import Screen, run_command
from commands.declarations import DECLARED
from emulator.control_plane import start_controller
from emulator.options import RunOptions, read_run
from emulator.processes import READY_TIMEOUT_S, LineProcess, wait_for
from emulator.result import PROGRAM, revision
from emulator.running import Running
from emulator.scenario import Scenario, controller_config, make_scenario
from emulator.timeline import Timeline, progress_of
from experiments.live import Dashboard
from experiments.logs import open_network
from experiments.run.watching import start_watching
from scenario.emulation import EmulationTable
from scenario.modes import MODES
from topologies.engines import make_engine
from topologies.machine_check import check_machine
from topologies.network import Network


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class TopoOptions(RunOptions):
    """`make topo` has the options of `make run`, of which only those of the network matter."""

    emulation: EmulationTable = EmulationTable(results=Path("results/topo"))


def main(arguments: Sequence[str]) -> int:
    """Run the command line until its end; return exit code 2 if it could not start."""
    return run_command(
        arguments,
        lambda given: read_run(TopoOptions, given, "weir topo", __doc__ or ""),
        _run,
    )


def _run(screen: Screen, options: RunOptions) -> int:
    check_machine()
    engine = make_engine(options.emulation.engine)
    scenario = make_scenario(options)
    with ExitStack() as stack:
        dashboard = Dashboard(options.pool_blocks)
        watch = start_watching(scenario, screen.say, stack, dashboard)
        how = options.emulation
        about = {"revision": revision(), "seed": options.workload.seed, "engine": options.emulation.engine}
        network = stack.enter_context(
            open_network(screen, scenario.fabric, engine, how.results, about, secure=how.secure)
        )
        with screen.status("compiling the P4 program"):
            artifacts = network.compile(PROGRAM, scenario.defines)
        network.start_switches()
        config = controller_config(scenario, network, artifacts, MODES["pool"])
        controller = start_controller(config, network, network.directory)
        wait_for("ready", [controller], controller.events, READY_TIMEOUT_S)
        timeline = Timeline(network, progress_of([controller]))
        running = Running(network, "pool", (), (), controller, config.switches, timeline)
        stack.enter_context(watch(running))
        stack.enter_context(timeline)
        stack.enter_context(listening(screen, controller))
        describe(screen, scenario, network)
        from mininet.log import setLogLevel

        from experiments.run.live_cli import LiveCli

        setLogLevel("output")
        LiveCli(network, screen, dashboard, shows_at_once=options.emulation.live)
    return 0


@contextmanager
def listening(screen: Screen, controller: LineProcess) -> Iterator[None]:
    """Read the controller's events for as long as it runs, and report an error if it ends by itself."""
    left = {"event": "left"}

    def listen() -> None:
        while (event := controller.events.get()[1]) is not left:
            if event["event"] == "ended" and not controller.stopping:
                screen.error(str(controller.failure()))

    thread = Thread(target=listen, daemon=True)
    thread.start()
    try:
        yield
    finally:
        controller.events.put((controller, left))
        thread.join()


def describe(screen: Screen, scenario: Scenario, network: Network) -> None:
    """Print what runs where, and what to try."""
    fabric = scenario.fabric
    for switch in fabric.switches:
        behind = ", ".join(f"{port.number}: {port.peer}" for port in fabric.ports(switch))
        screen.say(
            f"{switch}  device {fabric.device_id(switch)}  P4Runtime {network.address(switch)}  {behind}"
        )
    for name, endpoint in fabric.hosts.items():
        screen.say(f"{name:8} {endpoint.ipv4}  {endpoint.mac}")
    switch = fabric.switches[0]
    screen.say(
        f"Try: pingall, live node1 ping -c 9 {fabric.answering[-1]}, {switch} tcpdump -ni {switch}-eth1; "
        "`make shell` in another terminal."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
