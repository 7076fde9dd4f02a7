"""Keys of a scenario for decoding nodes, for switches that route requests by prefix, and for prices."""

from typing import Annotated

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, OneOf, Within


@dataclass(frozen=True, slots=True, config=DECLARED)
class Decoders:
    """Nodes that decode what others prefilled (nodes.decode = "apart"). By default there are enough of them:
    each request decodes alone, and its KV is there at once."""

    count: Annotated[int, Within(0, 256)] = 0
    """Decoding nodes; 0: always enough. Each has the GPUs of a node and decodes in a continuous batch."""
    placing: Annotated[str, OneOf(("load", "round_robin", "network"))] = "load"
    """Choice of a request's decoder. load: the one that holds the fewest tokens; round_robin: each in turn;
    network: the one with the soonest expected first token, by links and load."""
    racks: Annotated[int, Within(1, 256)] = 1
    """Racks over which nodes and decoders are spread, in order."""
    uplink_gbit_s: Annotated[float, Within(0.0, 1e6)] = 0.0
    """Rate between a rack and the others, in each direction; 0: no bottleneck."""
    running_gb: Annotated[float, Within(0.0, 1e6)] = 64.0
    """GPU memory of each decoder for the requests that it decodes; requests without room wait."""
    load_gbyte_s: Annotated[float, Within(0.0, 1e6)] = 0.0
    """Rate at which KV moves from a decoder's DRAM to its GPUs; 0: it arrives at the GPUs at once."""


@dataclass(frozen=True, slots=True, config=DECLARED)
class Routing:
    """Switches that route requests by prefix, with workload.scheduler = "load_reports" or "pinned_reports"
    (prefix_routing.py). The defaults are KVSwitch's own."""

    leaves: Annotated[int, Within(1, 64)] = 2
    """Leaves over which workers are spread, in order."""
    buckets: Annotated[int, Within(1, 65_536)] = 32
    """Buckets over which a switch spreads requests; if a leaf has more workers than buckets, some get
    none."""
    hash_tokens: Annotated[int, Within(1, 1_000_000)] = 256
    """Tokens that a hash of a prompt's header covers."""
    hashes: Annotated[int, Within(1, 4096)] = 4
    """Prefixes that a request's header names: of one to this many times `hash_tokens`."""
    rules: Annotated[str, OneOf(("first", "longest"))] = "first"
    """Prefix that decides on a request's route. first: its first `hash_tokens`; longest: the longest one that
    the switch has a rule for when the request comes."""
    admitted: Annotated[int, Within(1, 1_000_000)] = 2
    """Reports of a prefix after which switches have a rule for it."""
    window_s: Annotated[float, Within(0.0, 1e9)] = 60.0
    """first: age up to which these reports count. A worker reports a prefix once, so a rule stops changing
    this long after the last worker came to hold the prefix, whatever loads are reported. longest: all reports
    count."""
    uncovered: Annotated[float, Within(0.0, 1e6)] = 0.05
    """Weight of a leaf or worker that does not hold a prefix; one that does has 1 without load."""
    report_s: Annotated[float, Within(0.0, 1e3)] = 0.1
    """Shortest time between two load reports of a worker."""
    report_tokens: Annotated[int, Within(0, 1_000_000)] = 100
    """Smallest change of load that a worker reports."""
    late_reports: bool = False
    """Whether a report that comes too early is sent as soon as it may be, instead of not at all."""
    gather_s: Annotated[float, Within(0.0, 1e3)] = 0.5
    """Time from a load report until the rules follow it."""


@dataclass(frozen=True, slots=True, config=DECLARED)
class Prices:
    """Prices in dollars. docs/simulator.md has the sources; all are assumptions that a reader may replace."""

    node_per_hour: Annotated[float, Within(0.0, 1e6)] = 32.77
    """Inference node with its GPUs, per hour."""
    dram_per_gb: Annotated[float, Within(0.0, 1e6)] = 4.0
    """DRAM."""
    ssd_per_gb: Annotated[float, Within(0.0, 1e6)] = 0.1
    """SSDs."""
    store_server: Annotated[float, Within(0.0, 1e9)] = 8000.0
    """Storage node without its memory."""
    nic: Annotated[float, Within(0.0, 1e9)] = 1745.0
    """Network adapter."""
    smartnic: Annotated[float, Within(0.0, 1e9)] = 3490.0
    """Network adapter that decodes; an assumption: twice `nic`."""
    switch: Annotated[float, Within(0.0, 1e9)] = 16_000.0
    """Switch."""
    pool_per_gb: Annotated[float, Within(0.0, 1e6)] = 4.0
    """Memory attached to the switch; SRAM is part of the switch's price."""
    pool_fixed: Annotated[float, Within(0.0, 1e9)] = 16_000.0
    """Extra price of a switch with a pool; an assumption: as much again as the switch."""
    cxl_adapter: Annotated[float, Within(0.0, 1e9)] = 210.0
    """CXL adapter."""
    cxl_switch: Annotated[float, Within(0.0, 1e9)] = 5800.0
    """CXL switch."""
    years: Annotated[float, Within(0.01, 100.0)] = 4.0
    """Time over which hardware is paid off."""
