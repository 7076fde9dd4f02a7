"""Keys of a scenario that say how it is emulated. The simulator reads none of them."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, OneOf, Variable, Within
from scenario.modes import COMPARED, MODES
from topologies.engines import ENGINES


@dataclass(frozen=True, slots=True, config=DECLARED)
class EmulationTable:
    """Emulation of a scenario, and the machines that carry it."""

    engine: Annotated[str, OneOf(ENGINES), Variable("ENGINE")] = "embedded"
    """Engine of the switches."""
    sigma: Annotated[Annotated[float, Within(1, 1e9)] | Literal["auto"], Variable("SCALE")] = "auto"
    """Factor by which bytes and link rates are divided; auto: chosen by what this machine can carry."""
    speed: Annotated[float | None, Within(0.01, 1000), Variable("SPEED")] = None
    """Seconds of the trace in one second of the run; default: enough for a run of 15 s, or of 32 s of a
    TRACE."""
    modes: Annotated[tuple[Annotated[str, OneOf(MODES)], ...], Variable("MODES")] = COMPARED
    """Modes that are compared."""
    runs: Annotated[int, Within(1, 50), Variable("RUNS")] = 1
    """Runs of each mode, in turn; above 1 the table has intervals."""
    secure: Annotated[bool, Variable("SECURE")] = False
    """Whether P4Runtime uses TLS, with certificates on both sides."""
    live: Annotated[bool, Variable("LIVE")] = False
    """Whether to show links, tiers, pool and decisions in a terminal during the run."""
    metrics: Annotated[int, Within(0, 65535), Variable("METRICS")] = 0
    """Port on 127.0.0.1 where Prometheus finds metrics of all processes; 0: none."""
    traces: Annotated[bool, Variable("TRACES")] = False
    """Whether to write each request's way as spans, in OTLP/JSON and for Perfetto."""
    pcap: Annotated[tuple[str, ...], Variable("PCAP")] = ()
    """Hosts and switches whose traffic is recorded as pcapng, such as node3,s1."""
    servers: Annotated[tuple[str, ...], Variable("SERVERS")] = ()
    """Machines that carry the network, as ssh names them: a,b,c, or a .toml file; none: this machine."""
    results: Annotated[Path, Variable("RESULTS")] = Path("results/run")
    """Folder for the results."""
