"""A scenario: everything that a simulation depends on. One class is one TOML table, one field one key.

Sizes and rates are real ones. `load_scenario` reads a file; `checks.py` refuses what cannot be.
docs/simulator.md has an example.
"""

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from controller.config import EVICTION_MODES, FILL_MODES
from controller.policies import POLICY_NAMES
from hostlib.model.gate import ANSWERS, HINTS
from hostlib.model.tier_rules import DEFAULT_RULE, RULES
from simulator.hardware import Decoders, Prices, Routing
from simulator.machine import Machine
from simulator.measured import DIGEST_CPU_S
from simulator.schema import (
    Document,
    ScenarioError,
    checked,
    choice,
    decode,
    number,
    read_document,
    whole,
    whole_or,
)
from topologies.registry import TOPOLOGIES
from workload.blend import DEFAULT_SHARE
from workload.compression import CODERS, CPU, NONE, codecs
from workload.cost import ATTENTION_SHARES, DEFAULT_GPU, DEFAULT_MODEL, GPUS, MODELS
from workload.levels import ADAPTIVE
from workload.schedule import SCHEDULERS
from workload.shapes import played_shape

WARMTHS = ("no", "unicast", "multicast", "pool", "there")
SWITCH_ROUTERS = ("load_reports", "pinned_reports")
ROUTERS = ("longest_prefix", *SWITCH_ROUTERS)
GB = 1e9
GBIT_BYTES = 1e9 / 8
SWITCHES = "switches"
"""Of `direct.front`: no idealised one."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What is asked of the system."""

    trace: str = ""
    """A trace file or folder of sessions, relative to the scenario's folder; empty: `shape` is generated."""
    sessions_per_hour: float = number(300.0, 1e-3, 1e6)
    """Of a trace of sessions: how many start an hour."""
    hours: float = number(1.0, 1e-3, 1e3)
    """Of a trace of sessions: for how long they are served."""
    shared_prefix: bool = True
    """false: sessions of a trace share no block, not even tools and system prompt."""
    loop: str = choice("closed", ("open", "closed"))
    """closed: a session's next request comes its think time after the answer before it; open: at its recorded
    time. Other requests come at the trace's times."""
    shape: str = checked("agents", played_shape)
    """One of workload.shapes.PLAYED_SHAPES; those of workload.fan_in take parameters."""
    requests: int = whole(1000, 1, 10_000_000)
    start_s: float | None = number(None, 0.0, 1e9)
    """Second of the trace to begin at, what came before being stored; default: a third into it."""
    load: float = number(1.0, 1e-3, 1e3)
    """Requests arrive this many times as fast as in the trace."""
    reuse: float = number(1.0, 0.0, 1.0)
    """Share of the requests that keep their prefix; the others are made one of a kind."""
    jitter_s: float = number(0.0, 0.0, 3600.0)
    """Requests reach their nodes up to so much late: what hosts that don't wake in time do."""
    clients: int = whole(0, 0, 100_000)
    """Closed loop: clients that each wait for an answer before they ask again; 0: the trace's times."""
    hit_share: float | None = number(None, 0.0, 1.0)
    """Replaces the trace: every prompt is one of its own, of which this share is stored already."""
    hits_whole: bool = False
    """With `hit_share`: of so many prompts everything is stored, of the others nothing."""
    prompt_tokens: int = whole(16_000, 1, 10_000_000)
    """With `hit_share`: tokens of the shortest prompt."""
    prompt_excess_tokens: float = number(0.0, 0.0, 1e7)
    """With `hit_share`: mean of what prompts have beyond the shortest, exponentially distributed."""
    output_tokens: int = whole(100, 1, 1_000_000)
    """With `hit_share`: tokens of each answer."""
    output_tokens_most: int = whole(0, 0, 1_000_000)
    """With `hit_share`: lengths are geometric, `output_tokens` the mean, cut at so many; 0: all are equal."""
    scheduler: str = choice("random", (*SCHEDULERS, *ROUTERS))
    """Those of `workload.schedule`, and routers, which follow prefixes (prefix_routing.py, [routing])."""
    estimate: str = choice("overlapped", ("overlapped", "paper"))
    """With the conductor: a first token waits for the longer of queue and transfer, or for both in turn, as
    in Mooncake's algorithm 1. It decides who serves; how long things take it does not change."""
    ttft_slo_s: float | None = number(None, 0.0, 1e6)
    """What streams at adaptive levels aim at. With the conductor: a request whose first token is expected
    later than that is refused."""
    seed: int = whole(1, 0, 1 << 31)


DECODINGS = ("beside", "gpu", "smartnic")


@dataclass(frozen=True, slots=True)
class Model:
    """The model served, and the accelerators of one node."""

    name: str = choice(DEFAULT_MODEL, MODELS)
    layers: int | None = whole(None, 1, 10_000)
    """With these five, a model of its own instead of a preset."""
    hidden: int | None = whole(None, 1, 1_000_000)
    kv_values_per_layer: int | None = whole(None, 1, 10_000_000)
    """Of a token: 2 * KV heads * head size; with MLA the latent and the rope dimensions."""
    kv_dtype_bytes: float | None = number(None, 0.125, 8.0)
    weights: float | None = number(None, 1.0, 1e15)
    """Read by one decoded token; the active ones of a mixture of experts."""
    gpu: str = choice(DEFAULT_GPU, GPUS)
    gpus: int = whole(8, 1, 1024)
    block_tokens: int | None = whole(None, 1, 65_536)
    """Tokens of a block; default: the trace's."""
    prefill_utilisation: float = number(0.5, 0.01, 1.0)
    memory_utilisation: float = number(0.7, 0.01, 1.0)
    launch_ms: float = number(0.0, 0.0, 1000.0)
    """Of a step, beside arithmetic and memory; above 0 a prefill reads the weights once, too."""
    codec: str = choice(NONE, (NONE, *codecs()))
    """By which blocks are coded before they are sent; all have the mean of the measured sizes."""
    level: int | str | None = whole_or(ADAPTIVE, None, 0, 99)
    """Of the codec; default: its own; "adaptive": one for each chunk, to meet workload.ttft_slo_s."""
    coder: str = choice(CPU, CODERS)
    """How long decoding takes (workload/compression.py). Encoding takes no time."""
    decoding: str = choice("beside", DECODINGS)
    """beside: fetched blocks are decoded beside everything else; gpu: on the node's GPU, where no token is
    decoded meanwhile; smartnic: on the network adapter. With `coded_share` or a codec."""
    decoding_slowdown: float = number(0.0, 0.0, 100.0)
    """gpu: tokens go on instead, and take so many times as long, as do blocks meanwhile."""
    decode_gbyte_s: float = number(0.0, 0.0, 1e5)
    """Of plain KV that is decoded; 0: what `coder` says."""
    coded_share: float | None = number(None, 0.01, 1.0)
    """Part of a plain block that a coded one has; default: what the codec was measured to make."""
    attention: str = choice("full", ATTENTION_SHARES)
    """full: every pair of tokens, as Mooncake counts; causal: half of them, as engines' kernels compute."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The inference nodes."""

    count: int = whole(8, 1, 256)
    gpu_gb: float = number(32.0, 0.0, 1e6)
    """GPU memory that holds blocks for reuse."""
    dram_gb: float = number(256.0, 0.0, 1e7)
    """Local DRAM for blocks; 0: none."""
    decode: str = choice("apart", ("apart", "batched", "steps", "budget"))
    """apart: other nodes decode; batched: the same GPU, prefill in chunks; steps: vLLM's steps, which loads
    hold up (steps.py); budget: fixed times within a budget of tokens (budget.py), and nothing is fetched."""
    budget_tokens: int = whole(8192, 1, 10_000_000)
    """budget: computed and answered tokens of the requests that are served at once."""
    request_ms: float = number(12.27, 0.0, 1e6)
    """budget: to the first token, besides what the prompt's tokens take."""
    computed_token_us: float = number(14.04, 0.0, 1e6)
    held_token_us: float = number(0.94, 0.0, 1e6)
    output_token_ms: float = number(3.0, 0.0, 1e6)
    """budget: for each token of a prompt that is not held, or is; of an answer after the first."""
    running_gb: float = number(64.0, 0.0, 1e6)
    """batched: GPU memory for the requests that run; who finds no room waits."""
    chunk_tokens: int = whole(8192, 1, 1_000_000)
    """batched: tokens of a step. Default: max_num_batched_tokens of vLLM's server on 70 GB and more."""
    engine_token_us: float = number(0.0, 0.0, 1e6)
    """What the engine does for each token of a prompt while its GPU waits: hashing, block tables, copies."""
    loading: str = choice("overlapped", ("overlapped", "blocking"))
    """blocking: blocks are fetched in the request's turn at the GPU, and nothing is computed meanwhile."""
    asking: str = choice("chain", ("chain", "block"))
    """chain: all missing blocks are named at once; block: the next when the one before it has come."""
    tiers: str = choice(DEFAULT_RULE, RULES)
    """Which blocks GPU memory and DRAM hold (docs/tiers.md)."""
    stores_new: bool = True
    """false: what is computed is not stored, so that all that can be fetched was there at the beginning."""
    gate: str = choice("always", ("always", "compare", "never"))
    """Whether missing blocks are fetched: compare asks the cost model, under the load seen now."""
    blend: bool = False
    """Whether chunks behind a request's prefix are fetched by chunk key and blended (CacheBlend)."""
    blend_share: float = number(DEFAULT_SHARE, 0.0, 1.0)
    """With `blend`: share of the chunks' tokens that is recomputed."""
    hints: str = choice(ANSWERS, HINTS)
    """What the gate knows of homes: their last answers, what they say before it asks, or the switch does."""
    joining: int = whole(0, 0, 255)
    """So many of them, the last, join while the others serve: with empty memory, and with planned schedulers
    only."""
    joins_at: float = number(0.5, 0.0, 1.0)
    """The share of the requests after which these are also sent some."""
    lead_s: float = number(1.0, 0.0, 1e6)
    """How long before that they are there, and are made warm."""
    warm: str = choice("no", WARMTHS)
    """What was used most is in every node, or with `joining` in those that join: there when the run begins,
    or they join, or pushed then, by homes (unicast, multicast) or by what the switches' pools hold (pool)."""
    warm_gb: float = number(16.0, 0.0, 1e6)
    """Of blocks that make a node warm."""


@dataclass(frozen=True, slots=True)
class Network:
    """Links and the fabric between nodes and storage."""

    topology: str = choice("star", TOPOLOGIES)
    leaves: int | None = whole(None, 1, 64)
    spines: int | None = whole(None, 1, 64)
    pods: int | None = whole(None, 2, 64)
    link_gbit_s: float = number(200.0, 0.0, 1e6)
    latency_us: float = number(2.0, 0.0, 1e6)
    """Of one hop: propagation and switching."""
    fragments: int = whole(32, 1, 65_535)
    """Pieces of a block in which flow control counts (docs/protocol.md)."""
    segments: int = whole(1, 1, 64)
    """Pieces in which the simulator moves a block behind its probe: more are finer and slower."""
    target_backlog_ms: float = number(20.0, 0.0, 1e6)
    """A home that reports more than that waiting shrinks the windows of those who ask."""
    header_share: float = number(0.02, 0.0, 2.0)
    """Header bytes per byte of value."""
    request_share: float = number(0.02, 0.0, 2.0)
    """Bytes of requests (and acknowledgements) per byte of value."""
    requests_first: bool = False
    """Requests and acknowledgements have a queue of their own at each port, before blocks."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Where blocks live: storage nodes behind the fabric, a memory pool that nodes read directly, or the
    nodes' own memory, which they read from one another (peers)."""

    kind: str = choice("stores", ("stores", "direct", "peers"))
    count: int = whole(2, 0, 256)
    dram_gb: float = number(4000.0, 0.0, 1e8)
    """Of each storage node."""
    ssd_gb: float = number(8000.0, 0.0, 1e9)
    ssd_gbyte_s: float = number(12.0, 0.0, 1e5)
    own_gb: float = number(0.0, 0.0, 1e7)
    """peers: of each node's DRAM what it would have without lending; only what is beyond is the cache's."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The pool in the switches."""

    memory: str = choice("sram", ("none", "sram", "dram"))
    """sram: served at line rate; dram: attached to the switch, at `memory_gbyte_s`."""
    size_gb: float = number(25.0, 0.0, 1e6)
    """Of each switch."""
    memory_gbyte_s: float = number(400.0, 0.0, 1e6)
    memory_latency_us: float = number(0.75, 0.0, 1e6)
    index_entries: int = whole(1 << 20, 1, 1 << 31)
    policy: str = choice("reuse", POLICY_NAMES)
    merging: bool = True
    multicast: bool = True
    """false: copies of a merged reply go through the switch's recirculation port, one after the other."""
    pending_cells: int = whole(16_384, 1, 1 << 31)
    pending_timeout_s: float = number(0.2, 1e-6, 1e3)
    sketch_epoch_s: float = number(67.1, 1e-6, 1e6)
    """Counts of misses are halved every epoch."""


@dataclass(frozen=True, slots=True)
class Control:
    """The controller and its costs."""

    report_count: int = whole(2, 1, 0x8000)
    max_digests_per_s: int = whole(500, 1, 1_000_000)
    fill: str = choice("on_the_way", FILL_MODES)
    eviction: str = choice("drop", EVICTION_MODES)
    push: bool = False
    """Blocks of the pool are multicast to nodes that subscribed to their prefix and keep asking for it."""
    expects: bool = False
    """Nodes tell the controller of their switch of blocks that they begin to compute and will store, and PUTs
    fill the pool as they pass. Live nodes do unless told otherwise; false is what the study was made with."""
    digest_latency_s: float = number(0.005, 0.0, 1e3)
    list_s: float = number(0.0, 0.0, 1e3)
    """Digests leave the switch in lists, so long after the first of a list, or sooner where that one ends a
    pause (v1model.binding.digests); 0: each by itself."""
    digest_cpu_s: float = number(DIGEST_CPU_S, 0.0, 1e3)
    """Controller time for a digest."""
    writes_per_s: float = number(1150.0, 0.0, 1e9)
    """Table updates a second that a switch takes."""
    write_latency_s: float = number(0.002, 0.0, 1e3)
    read_entry_s: float = number(2e-5, 0.0, 1e3)
    """Controller time to read one hit counter."""
    digest_bytes: int = whole(80, 0, 1 << 20)
    update_bytes: int = whole(120, 0, 1 << 20)
    read_entry_bytes: int = whole(90, 0, 1 << 20)


@dataclass(frozen=True, slots=True)
class Direct:
    """A memory pool that nodes read directly (storage.kind = "direct"): DRAM of others over RDMA, or CXL.
    Of these, peers have `lookup_s`, `block_s`, `peer_share` and `front`; their links are the network's."""

    size_gb: float = number(2000.0, 0.0, 1e8)
    devices: int = whole(32, 1, 4096)
    device_gbyte_s: float = number(22.5, 0.0, 1e6)
    interleaved: bool = True
    """Every block spread over all devices; false: a block lies on one, in the order of writing."""
    device_gb: float = number(256.0, 0.0, 1e8)
    """Not interleaved: one device is filled before the next."""
    nodes_per_adapter: int = whole(1, 1, 256)
    """Inference nodes that share a server's adapters."""
    read_gbyte_s: float = number(46.0, 0.0, 1e6)
    """Of a server's adapters together, towards the GPUs."""
    write_gbyte_s: float = number(33.0, 0.0, 1e6)
    copy_gbyte_s: float = number(0.0, 0.0, 1e6)
    """Of what the client itself copies, one block after the other; 0: it copies nothing."""
    lookup_s: float = number(2.11e-6, 0.0, 10.0)
    """One question to the index."""
    block_s: float = number(10.55e-6, 0.0, 10.0)
    """Fixed cost of moving one block."""
    peer_share: float = number(1.0, 0.01, 1.0)
    """Of a link's rate that a node's transfers to others reach."""
    front: str = choice("none", ("none", "merge", "pool", "whole", SWITCHES))
    """A switch in front of it that merges reads, or that also keeps blocks in a pool of `pool.size_gb` a
    switch; whole: has every block that anybody has, a bound. These are idealised, and one switch. switches:
    peers answer GETs that pass the network's switches, which have the pool of [pool] and its controller."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """All tables."""

    name: str = field(default="scenario", metadata={})
    source: str = field(default="", metadata={})
    """Where the figures come from."""
    workload: Workload = field(default_factory=Workload)
    model: Model = field(default_factory=Model)
    nodes: Nodes = field(default_factory=Nodes)
    decoders: Decoders = field(default_factory=Decoders)
    routing: Routing = field(default_factory=Routing)
    network: Network = field(default_factory=Network)
    storage: Storage = field(default_factory=Storage)
    pool: Pool = field(default_factory=Pool)
    control: Control = field(default_factory=Control)
    direct: Direct = field(default_factory=Direct)
    prices: Prices = field(default_factory=Prices)
    machine: Machine = field(default_factory=Machine)

    @property
    def lends(self) -> bool:
        """Whether nodes answer one another's GETs, past the network's switches."""
        return self.storage.kind == "peers" and self.direct.front == SWITCHES

    @property
    def switched(self) -> bool:
        """Whether GETs pass switches that could have a pool."""
        return self.storage.kind == "stores" or self.lends

    def changed(self, **tables: dict[str, Any]) -> "Scenario":
        """A copy with other values in some tables: changed(nodes={"count": 16})."""
        return replace(
            self, **{name: replace(getattr(self, name), **values) for name, values in tables.items()}
        )


NAMES = ("name", "source")
BASES = 4
"""How many files a scenario may be based on, one on the other."""
TABLES: dict[str, Any] = {entry.name: entry.type for entry in fields(Scenario) if entry.name not in NAMES}


def load_scenario(path: str | Path) -> tuple[Scenario, Document]:
    """Read a scenario file; a trace in it is relative to the file. Raises ScenarioError.

    A file may name another as its `base`: it then only says what differs.
    """
    document = read_document(path)
    document.values = _with_bases(Path(path), document, BASES)
    scenario = decode_scenario(document)
    trace = scenario.workload.trace
    if trace and not Path(trace).is_absolute():
        scenario = scenario.changed(workload={"trace": str(Path(path).parent / trace)})
    return scenario, document


def _with_bases(path: Path, document: Document, deepest: int) -> dict[str, Any]:
    """The values of a document on top of those of its base, which must be right by itself."""
    own = dict(document.values)
    name = own.pop("base", None)
    if name is None:
        return own
    if not isinstance(name, str) or not deepest:
        raise document.error("base", f"must be the name of a file, {BASES} deep at most, not {name!r}")
    base = read_document(path.parent / name)
    base.values = _with_bases(path.parent / name, base, deepest - 1)
    decode_scenario(base)
    values = base.values
    for table, given in own.items():
        both = isinstance(given, dict) and isinstance(values.get(table), dict)
        values[table] = {**values[table], **given} if both else given
    return values


def decode_scenario(document: Document) -> Scenario:
    """The tables of a parsed file."""
    parts: dict[str, Any] = {}
    for name, values in document.values.items():
        if name in NAMES:
            if not isinstance(values, str):
                raise document.error(name, f"must be text, not {values!r}")
            parts[name] = values
        elif name not in TABLES:
            raise document.error(name, f"there is no such table; there are {', '.join((*NAMES, *TABLES))}")
        elif not isinstance(values, dict):
            raise document.error(name, "must be a table")
        else:
            parts[name] = decode(TABLES[name], values, document, name)
    return Scenario(**parts)


__all__ = ["GB", "GBIT_BYTES", "Prices", "Scenario", "ScenarioError", "decode_scenario", "load_scenario"]
