"""make run with SERVERS: find the servers, measure what each carries, and open the network
over all of them."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from cluster.agents import Agents
from cluster.clocks import Offset
from cluster.errors import ServerError
from cluster.machines import Servers
from cluster.messages import PYTHON
from cluster.network import ClusterNetwork
from cluster.placement import Placement, place
from cluster.preflight import inspect_servers
from cluster.refusals import Found
from cluster.servers import read_servers
from cluster.session import Session
from cluster.tunnels import Pair, TunnelFigures, measure_tunnels, too_slow
from commands.command import Screen
from emulator.machines import Machines, ThisMachine
from emulator.options import RunOptions
from emulator.scenario import Scenario, make_scenario
from experiments.logs import keep_logs
from experiments.run.capacity import Capacity
from hostlib.protocol.wire import MTU_BYTES, VALUE_FRAME_BYTES
from topologies.engines import Engine
from topologies.running import RunningNetwork

CAPACITY_TIMEOUT_S = 120.0


@dataclass
class Cluster:
    """The servers of a run, and what was measured of them."""

    found: Sequence[Found]
    tunnels: dict[Pair, TunnelFigures] = field(default_factory=dict)
    clocks: dict[str, tuple[Offset, Offset]] = field(default_factory=dict)
    """Offset of each server's CLOCK_MONOTONIC, when the last network was opened and when it was closed."""

    def place(self, scenario: Scenario) -> Placement:
        """Return which hosts and switches of a scenario each server carries."""
        return place(scenario.fabric, {found.server.name: found.usable_cores for found in self.found})

    def about(self, scenario: Scenario) -> dict[str, object]:
        """Return what results say of the servers and of the tunnels between them."""
        placement = self.place(scenario)
        asked = placement.crossing_bit_s()
        return {
            "servers": {found.server.name: self._server(placement, found) for found in self.found},
            "tunnels": [
                {"between": list(pair), "asked_bit_s": asked.get(pair, 0.0)}
                | {**asdict(figures), "carries_bit_s": figures.carries_bit_s}
                for pair, figures in self.tunnels.items()
            ],
        }

    def _server(self, placement: Placement, found: Found) -> dict[str, object]:
        name = found.server.name
        about: dict[str, object] = {
            "cores": found.usable_cores,
            "load_share": round(placement.load_share[name], 4),
            "carries": sorted(placement.on(name)),
            "wall_clock_ahead_ms": round(1000 * found.clock.ahead_s, 3),
        }
        if name in self.clocks:
            opened, closed = self.clocks[name]
            about["clock_within_ms"] = round(1000 * opened.within_s, 3)
            about["clock_drift_ms"] = round(1000 * (closed.ahead_s - opened.ahead_s), 3)
        return about


def find_servers(screen: Screen, options: RunOptions) -> Cluster | None:
    """Return the servers of SERVERS, with this checkout on each, or None without SERVERS.

    Raises OptionError and ServerError.
    """
    if not options.emulation.servers:
        return None
    servers = read_servers(options.emulation.servers)
    with screen.status(f"looking at {len(servers)} servers"):
        return Cluster(inspect_servers(servers, screen.say))


def measure_servers(screen: Screen, draft: Scenario, cluster: Cluster) -> Capacity | None:
    """Measure the tunnels and, unless SCALE is given, what all servers together can carry; None
    if it is given.

    The server that would be full first limits all. Raises ServerError if no packet comes through a tunnel.
    """
    with (
        screen.status("measuring what the servers and the tunnels between them can carry"),
        tempfile.TemporaryDirectory(prefix="weir-") as logs,
        Agents(cluster.found, Path(logs)) as agents,
    ):
        cluster.found = [one.with_cores(agents.cores[one.server.name]) for one in cluster.found]
        placement = cluster.place(draft)
        cluster.tunnels = measure_tunnels(placement.crossing_bit_s(), agents, VALUE_FRAME_BYTES)
        capacities = {} if draft.options.scale is not None else agents.on_all(_capacity)
    for (one, other), figures in cluster.tunnels.items():
        screen.say(
            f"tunnel {one} - {other}: {figures.carries_bit_s / 1e6:,.0f} Mbit/s in frames of "
            f"{figures.frame_bytes} bytes, {figures.rtt_us:.0f} us there and back, "
            f"{figures.send_us:.1f} us of CPU to send a frame"
        )
    if not capacities:
        return None
    shares = placement.load_share
    left = {name: each.fragments_per_s / shares[name] for name, each in capacities.items() if shares[name]}
    tightest = min(left, key=left.__getitem__)
    least = capacities[tightest]
    return replace(
        least,
        idle_cores=least.idle_cores / shares[tightest],
        cores=sum(each.cores for each in capacities.values()),
    )


def _capacity(name: str, session: Session) -> Capacity:
    command = [PYTHON, "-m", "experiments.run.capacity"]
    figures = json.loads(session.ask("run", command=command, timeout_s=CAPACITY_TIMEOUT_S))
    return Capacity(**{**figures, "others": tuple(figures["others"])})


def sigma_for_tunnels(screen: Screen, scenario: Scenario, cluster: Cluster) -> float | None:
    """Return the smallest sigma, in powers of two times the scenario's, at which all
    tunnels carry their links.

    None if the scenario's sigma is large enough. Raises ServerError if it is not and SCALE gave it.
    """
    found = too_slow(cluster.place(scenario).crossing_bit_s(), cluster.tunnels)
    if found is None:
        return None
    (one, other), over = found
    carries_bit_s = cluster.tunnels[one, other].carries_bit_s
    problem = f"the tunnel between servers {one} and {other} carries {carries_bit_s / 1e6:,.0f} Mbit/s"
    if scenario.options.scale is not None:
        least = math.ceil(scenario.scale.sigma * over)
        raise ServerError(f"{problem}, and links ask for too much of it: use SCALE={least} or more")
    sigma = math.ldexp(scenario.scale.sigma, math.ceil(math.log2(over)))
    screen.say(f"{problem}: sigma {sigma:g}.")
    return sigma


def scenario_on(screen: Screen, scenario: Scenario, cluster: Cluster) -> Scenario:
    """Return the scenario, with a larger sigma if the tunnels need one."""
    sigma = sigma_for_tunnels(screen, scenario, cluster)
    return scenario if sigma is None else make_scenario(scenario.options, sigma)


@contextmanager
def open_on_servers(
    screen: Screen, scenario: Scenario, engine: Engine, about: Mapping[str, object], cluster: Cluster
) -> Iterator[RunningNetwork]:
    """Open a network over the servers; its logs are stored as those of a network on this machine."""
    placement = cluster.place(scenario)
    for found in cluster.found:
        screen.say(_carried(placement, found))
    network = ClusterNetwork(placement, cluster.found, engine, mtu_bytes=MTU_BYTES)
    with keep_logs(screen, network, scenario.options.emulation.results, about) as opened:
        before = opened.clocks
        yield opened
        opened.compare_clocks()
        cluster.clocks = {name: (before[name], opened.clocks[name]) for name in before}


def machines_of(network: RunningNetwork) -> Machines:
    """Return what measures and steers the machines that carry a network."""
    return Servers(network) if isinstance(network, ClusterNetwork) else ThisMachine(network)


def _carried(placement: Placement, found: Found) -> str:
    name = found.server.name
    here, fabric = placement.on(name), placement.fabric
    kinds = ((fabric.switches, "switches"), (fabric.nodes, "nodes"), (fabric.stores, "storage nodes"))
    counts = [f"{sum(one in here for one in of_kind)} {what}" for of_kind, what in kinds]
    idle = "" if here else "; a leaf with its hosts is more than its share, and is not divided"
    return (
        f"server {name}: {', '.join(counts)}, {placement.load_share[name]:.0%} of the work on "
        f"{found.usable_cores:g} cores{idle}"
    )
