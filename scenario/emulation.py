"""Of a scenario: how it is played. The simulator reads nothing of it."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, OneOf, Variable, Within
from scenario.modes import COMPARED, MODES
from topologies.engines import ENGINES


@dataclass(frozen=True, slots=True, config=DECLARED)
class EmulationTable:
    """How a scenario is played, and on which machines."""

    engine: Annotated[str, OneOf(ENGINES), Variable("ENGINE")] = "embedded"
    """Engine of the switches."""
    sigma: Annotated[Annotated[float, Within(1, 1e9)] | Literal["auto"], Variable("SCALE")] = "auto"
    """Bytes and link rates are divided by it; auto: by what this machine can carry."""
    speed: Annotated[float | None, Within(0.01, 1000), Variable("SPEED")] = None
    """Seconds of the trace in one of the run; default: as many as make it play in 32 s."""
    modes: Annotated[tuple[Annotated[str, OneOf(MODES)], ...], Variable("MODES")] = COMPARED
    """What is compared."""
    runs: Annotated[int, Within(1, 50), Variable("RUNS")] = 1
    """How often each mode is played, in turn; above 1 the table has intervals."""
    secure: Annotated[bool, Variable("SECURE")] = False
    """P4Runtime goes over TLS, with certificates on both sides."""
    live: Annotated[bool, Variable("LIVE")] = False
    """Show links, tiers, pool and decisions in a terminal while it runs."""
    metrics: Annotated[int, Within(0, 65535), Variable("METRICS")] = 0
    """Port on 127.0.0.1 where Prometheus finds metrics of all processes; 0: none."""
    traces: Annotated[bool, Variable("TRACES")] = False
    """Write each request's way as spans, in OTLP/JSON and for Perfetto."""
    pcap: Annotated[tuple[str, ...], Variable("PCAP")] = ()
    """Hosts and switches whose traffic is kept as pcapng, such as node3,s1."""
    servers: Annotated[tuple[str, ...], Variable("SERVERS")] = ()
    """Machines that carry the network, as ssh knows them: a,b,c, or a .toml file; none: this one."""
    results: Annotated[Path, Variable("RESULTS")] = Path("results/run")
    """Folder for the results."""
