"""Of a scenario: nodes that decode, switches that route requests by prefix, and what things cost."""

from dataclasses import dataclass

from simulator.schema import choice, number, whole


@dataclass(frozen=True, slots=True)
class Decoders:
    """Nodes that decode what others prefilled (nodes.decode = "apart"); by default there are enough of them,
    each request's alone, and its KV is there at once."""

    count: int = whole(0, 0, 256)
    """0: as said above. Each has the GPUs of a node and decodes in a continuous batch."""
    placing: str = choice("load", ("load", "round_robin", "network"))
    """Who decodes a request: the one that holds the fewest tokens, each in turn, or the one whose first token
    is expected soonest by links and load."""
    racks: int = whole(1, 1, 256)
    """Nodes and decoders are spread over so many racks, in order."""
    uplink_gbit_s: float = number(0.0, 0.0, 1e6)
    """Between a rack and the others, in each direction; 0: no bottleneck."""
    running_gb: float = number(64.0, 0.0, 1e6)
    """GPU memory of each decoder for the requests that it decodes; who finds no room waits."""
    load_gbyte_s: float = number(0.0, 0.0, 1e6)
    """At which KV that has come to a decoder's DRAM goes on to its GPUs; 0: it comes to the GPUs at once."""


@dataclass(frozen=True, slots=True)
class Routing:
    """Switches that route requests by prefix, with workload.scheduler = "load_reports" or "pinned_reports"
    (prefix_routing.py). The defaults are KVSwitch's own."""

    leaves: int = whole(2, 1, 64)
    """Workers are spread over so many leaves, in order."""
    buckets: int = whole(32, 1, 65_536)
    """In which a switch shares requests out; with fewer than workers of a leaf some get none."""
    hash_tokens: int = whole(256, 1, 1_000_000)
    hashes: int = whole(4, 1, 4096)
    """A request's header names its prefixes of one to so many times `hash_tokens`."""
    rules: str = choice("first", ("first", "longest"))
    """first: by the shortest of these; longest: the longest of which a switch knows decides, at a time that
    the request comes."""
    admitted: int = whole(2, 1, 1_000_000)
    """Reports of a prefix before switches have a rule for it."""
    window_s: float = number(60.0, 0.0, 1e9)
    """first: of those reports the recent ones count. A worker reports a prefix once, so rules change no more
    so long after the last worker came to hold it, whatever loads are reported. longest: all count."""
    uncovered: float = number(0.05, 0.0, 1e6)
    """Weight of a leaf or worker that does not hold a prefix; one without load that does has 1."""
    report_s: float = number(0.1, 0.0, 1e3)
    report_tokens: int = whole(100, 0, 1_000_000)
    """Workers report their load no more often, and no smaller change."""
    late_reports: bool = False
    """A report that would have come too early is made when its time has come, instead of not at all."""
    gather_s: float = number(0.5, 0.0, 1e3)
    """Rules follow reports of load so late."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars. Sources in docs/simulator.md; all of them are assumptions that a reader may replace."""

    node_per_hour: float = number(32.77, 0.0, 1e6)
    """An inference node with its GPUs."""
    dram_per_gb: float = number(4.0, 0.0, 1e6)
    ssd_per_gb: float = number(0.1, 0.0, 1e6)
    store_server: float = number(8000.0, 0.0, 1e9)
    """A storage node without its memory."""
    nic: float = number(1745.0, 0.0, 1e9)
    smartnic: float = number(3490.0, 0.0, 1e9)
    """An adapter that decodes; an assumption: twice `nic`."""
    switch: float = number(16_000.0, 0.0, 1e9)
    pool_per_gb: float = number(4.0, 0.0, 1e6)
    """Memory attached to the switch; SRAM is part of the switch's price."""
    pool_fixed: float = number(16_000.0, 0.0, 1e9)
    """What a switch with a pool costs more than one without; an assumption: as much again."""
    cxl_adapter: float = number(210.0, 0.0, 1e9)
    cxl_switch: float = number(5800.0, 0.0, 1e9)
    years: float = number(4.0, 0.01, 100.0)
