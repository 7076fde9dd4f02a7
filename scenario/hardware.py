"""Of a scenario: nodes that decode, switches that route requests by prefix, and what things cost."""

from typing import Annotated

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, OneOf, Within


@dataclass(frozen=True, slots=True, config=DECLARED)
class Decoders:
    """Nodes that decode what others prefilled (nodes.decode = "apart"); by default there are enough of them,
    each request's alone, and its KV is there at once."""

    count: Annotated[int, Within(0, 256)] = 0
    """0: as said above. Each has the GPUs of a node and decodes in a continuous batch."""
    placing: Annotated[str, OneOf(("load", "round_robin", "network"))] = "load"
    """Who decodes a request: the one that holds the fewest tokens, each in turn, or the one whose first token
    is expected soonest by links and load."""
    racks: Annotated[int, Within(1, 256)] = 1
    """Nodes and decoders are spread over so many racks, in order."""
    uplink_gbit_s: Annotated[float, Within(0.0, 1e6)] = 0.0
    """Between a rack and the others, in each direction; 0: no bottleneck."""
    running_gb: Annotated[float, Within(0.0, 1e6)] = 64.0
    """GPU memory of each decoder for the requests that it decodes; who finds no room waits."""
    load_gbyte_s: Annotated[float, Within(0.0, 1e6)] = 0.0
    """At which KV that has come to a decoder's DRAM goes on to its GPUs; 0: it comes to the GPUs at once."""


@dataclass(frozen=True, slots=True, config=DECLARED)
class Routing:
    """Switches that route requests by prefix, with workload.scheduler = "load_reports" or "pinned_reports"
    (prefix_routing.py). The defaults are KVSwitch's own."""

    leaves: Annotated[int, Within(1, 64)] = 2
    """Workers are spread over so many leaves, in order."""
    buckets: Annotated[int, Within(1, 65_536)] = 32
    """In which a switch shares requests out; with fewer than workers of a leaf some get none."""
    hash_tokens: Annotated[int, Within(1, 1_000_000)] = 256
    """Tokens that a hash of a prompt's header covers."""
    hashes: Annotated[int, Within(1, 4096)] = 4
    """A request's header names its prefixes of one to so many times `hash_tokens`."""
    rules: Annotated[str, OneOf(("first", "longest"))] = "first"
    """first: by the shortest of these; longest: the longest of which a switch knows decides, at a time that
    the request comes."""
    admitted: Annotated[int, Within(1, 1_000_000)] = 2
    """Reports of a prefix before switches have a rule for it."""
    window_s: Annotated[float, Within(0.0, 1e9)] = 60.0
    """first: of those reports the recent ones count. A worker reports a prefix once, so rules change no more
    so long after the last worker came to hold it, whatever loads are reported. longest: all count."""
    uncovered: Annotated[float, Within(0.0, 1e6)] = 0.05
    """Weight of a leaf or worker that does not hold a prefix; one without load that does has 1."""
    report_s: Annotated[float, Within(0.0, 1e3)] = 0.1
    """Workers report their load no more often."""
    report_tokens: Annotated[int, Within(0, 1_000_000)] = 100
    """Workers report their load no more often, and no smaller change."""
    late_reports: bool = False
    """A report that would have come too early is made when its time has come, instead of not at all."""
    gather_s: Annotated[float, Within(0.0, 1e3)] = 0.5
    """Rules follow reports of load so late."""


@dataclass(frozen=True, slots=True, config=DECLARED)
class Prices:
    """Dollars. Sources in docs/simulator.md; all of them are assumptions that a reader may replace."""

    node_per_hour: Annotated[float, Within(0.0, 1e6)] = 32.77
    """An inference node with its GPUs."""
    dram_per_gb: Annotated[float, Within(0.0, 1e6)] = 4.0
    """DRAM."""
    ssd_per_gb: Annotated[float, Within(0.0, 1e6)] = 0.1
    """SSDs."""
    store_server: Annotated[float, Within(0.0, 1e9)] = 8000.0
    """A storage node without its memory."""
    nic: Annotated[float, Within(0.0, 1e9)] = 1745.0
    """A network adapter."""
    smartnic: Annotated[float, Within(0.0, 1e9)] = 3490.0
    """An adapter that decodes; an assumption: twice `nic`."""
    switch: Annotated[float, Within(0.0, 1e9)] = 16_000.0
    """A switch."""
    pool_per_gb: Annotated[float, Within(0.0, 1e6)] = 4.0
    """Memory attached to the switch; SRAM is part of the switch's price."""
    pool_fixed: Annotated[float, Within(0.0, 1e9)] = 16_000.0
    """What a switch with a pool costs more than one without; an assumption: as much again."""
    cxl_adapter: Annotated[float, Within(0.0, 1e9)] = 210.0
    """A CXL adapter."""
    cxl_switch: Annotated[float, Within(0.0, 1e9)] = 5800.0
    """A CXL switch."""
    years: Annotated[float, Within(0.01, 100.0)] = 4.0
    """Time over which hardware is paid off."""
