"""The tables of a scenario that emulator and simulator share: one class is one TOML table, one field one key.

Sizes and rates are real ones. Keys with a variable's name are those that the emulator has; the others are the
simulator's alone, because the emulator has no use for them or measures what they say.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator
from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, Each, Instead, Known, OneOf, Variable, Within
from commands.trace_options import TraceSource
from controller.config import AUTO, EVICTION_MODES, FILL_MODES, PLACEMENTS
from controller.policies import POLICY_NAMES
from hostlib.model.gate import ANSWERS, GATES, HINTS
from hostlib.model.tier_rules import DEFAULT_RULE, RULES
from topologies.registry import TOPOLOGIES
from workload.blend import DEFAULT_SHARE
from workload.compression import CODERS, CPU, NONE, codecs
from workload.cost import ATTENTION_SHARES, DEFAULT_GPU, DEFAULT_MODEL, GPUS, MODELS
from workload.schedule import SCHEDULERS
from workload.shapes import played_shape

SIMULATED_REQUESTS = 1000
MAX_POOL_BLOCKS = 65_536
"""Entries that a pool index is made for."""
WARMTHS = ("no", "unicast", "multicast", "pool", "there")
SWITCH_ROUTERS = ("load_reports", "pinned_reports")
ROUTERS = ("longest_prefix", *SWITCH_ROUTERS)
SWITCHES = "switches"
"""Of `direct.front`: no idealised one."""


@dataclass(frozen=True, slots=True, config=DECLARED)
class Workload(TraceSource):
    """What is asked of the system."""

    shape: Annotated[str, AfterValidator(played_shape), Variable("SHAPE")] = "agents"
    """Shape of the generated trace."""
    requests: Annotated[int | None, Within(1, 10_000_000), Variable("REQUESTS")] = None
    """Requests that are served; default: 1,000 simulated, and played 160 generated or 600 of a TRACE."""
    start_s: Annotated[float | None, Within(0.0, 1e9), Variable("START")] = None
    """Second of the trace to begin at, what came before being stored; default: a third into it."""
    load: Annotated[float, Within(1e-3, 1e3)] = 1.0
    """Requests arrive this many times as fast as in the trace."""
    reuse: Annotated[float, Within(0.0, 1.0)] = 1.0
    """Share of the requests that keep their prefix; the others are made one of a kind."""
    jitter_s: Annotated[float, Within(0.0, 3600.0)] = 0.0
    """Requests reach their nodes up to so much late: what hosts that don't wake in time do."""
    clients: Annotated[int, Within(0, 100_000)] = 0
    """Closed loop: clients that each wait for an answer before they ask again; 0: the trace's times."""
    hit_share: Annotated[float | None, Within(0.0, 1.0)] = None
    """Replaces the trace: every prompt is one of its own, of which this share is stored already."""
    hits_whole: bool = False
    """With `hit_share`: of so many prompts everything is stored, of the others nothing."""
    prompt_tokens: Annotated[int, Within(1, 10_000_000)] = 16_000
    """With `hit_share`: tokens of the shortest prompt."""
    prompt_excess_tokens: Annotated[float, Within(0.0, 1e7)] = 0.0
    """With `hit_share`: mean of what prompts have beyond the shortest, exponentially distributed."""
    output_tokens: Annotated[int, Within(1, 1_000_000)] = 100
    """With `hit_share`: tokens of each answer."""
    output_tokens_most: Annotated[int, Within(0, 1_000_000)] = 0
    """With `hit_share`: lengths are geometric, `output_tokens` the mean, cut at so many; 0: all are equal."""
    scheduler: Annotated[str, OneOf((*SCHEDULERS, *ROUTERS)), Variable("SCHEDULER")] = "random"
    """Which node serves a request; longest_prefix, load_reports and pinned_reports are routers of
    [routing], which the simulator has."""
    estimate: Annotated[str, OneOf(("overlapped", "paper"))] = "overlapped"
    """With the conductor: a first token waits for the longer of queue and transfer, or for both in turn, as
    in Mooncake's algorithm 1. It decides who serves; how long things take it does not change."""
    ttft_slo_s: Annotated[float | None, Within(0.0, 1e6), Variable("TTFT_SLO")] = None
    """Time to the first token that LEVEL=adaptive aims at; with SCHEDULER=conductor a request whose
    first token is expected later is refused. The table says how many met it."""
    tenants: Annotated[int, Within(0, 64), Variable("TENANTS")] = 0
    """Tenants that the nodes belong to in turn, each with a secret and an equal share of the pool, and
    nothing in the stores at the start; 0: all use the public namespace."""
    seed: Annotated[int, Within(0, 1 << 31), Variable("SEED")] = 1
    """Seed of generator, scheduler and policy."""

    @property
    def simulated_requests(self) -> int:
        """Requests of a simulation."""
        return self.requests or SIMULATED_REQUESTS


DECODINGS = ("beside", "gpu", "smartnic")


def preset_or_folder(name: str) -> str:
    """Return the name; raises ValueError for what is neither a preset nor a folder with a model."""
    if name not in MODELS and not (Path(name) / "config.json").is_file():
        advice = OneOf(MODELS).advice(name)
        raise ValueError(f"there is no {name!r}: {advice}, or a folder with a model's config.json")
    return name


@dataclass(frozen=True, slots=True, config=DECLARED)
class Model:
    """The model served, and the accelerators of one node."""

    name: Annotated[str, AfterValidator(preset_or_folder), Known(MODELS), Variable("MODEL")] = DEFAULT_MODEL
    """A preset, or a Hugging Face folder, whose real KV the emulator's blocks then hold, at the times of
    llama3-70b."""
    layers: Annotated[int | None, Within(1, 10_000)] = None
    """With these five, a model of its own instead of a preset."""
    hidden: Annotated[int | None, Within(1, 1_000_000)] = None
    """Width of the model."""
    kv_values_per_layer: Annotated[int | None, Within(1, 10_000_000)] = None
    """Of a token: 2 * KV heads * head size; with MLA the latent and the rope dimensions."""
    kv_dtype_bytes: Annotated[float | None, Within(0.125, 8.0)] = None
    """Size of a value of KV."""
    weights: Annotated[float | None, Within(1.0, 1e15)] = None
    """Read by one decoded token; the active ones of a mixture of experts."""
    gpu: Annotated[str, OneOf(GPUS), Variable("GPU")] = DEFAULT_GPU
    """GPUs of a node."""
    gpus: Annotated[int, Within(1, 1024)] = 8
    """GPUs in a node."""
    block_tokens: Annotated[int | None, Within(1, 65_536), Variable("BLOCK_TOKENS")] = None
    """Tokens of a block, such as vLLM's 16 or LMCache's 256: blocks of a TRACE are cut or joined,
    generated prompts are cut; default: the trace's own, 512 if generated."""
    prefill_utilisation: Annotated[float, Within(0.01, 1.0)] = 0.5
    """Part of the GPUs' peak arithmetic that a prefill reaches."""
    memory_utilisation: Annotated[float, Within(0.01, 1.0)] = 0.7
    """Part of the GPUs' memory bandwidth that decoding reaches."""
    launch_ms: Annotated[float, Within(0.0, 1000.0)] = 0.0
    """Of a step, beside arithmetic and memory; above 0 a prefill reads the weights once, too."""
    codec: Annotated[str, OneOf((NONE, *codecs())), Variable("CODEC")] = NONE
    """How blocks are coded before they are sent; the simulator's have the mean of the measured
    sizes."""
    level: Annotated[Annotated[int, Within(0, 99)] | Literal["adaptive"] | None, Variable("LEVEL")] = None
    """Level of the codec; default: its own (docs/blocks.md); adaptive: one for each chunk of a chain,
    chosen so that the first token comes within TTFT_SLO."""
    coder: Annotated[str, OneOf(CODERS), Variable("CODER")] = CPU
    """How long coding takes: as measured on a CPU, as published for a GPU, or no time. In the simulator
    encoding takes none."""
    decoding: Annotated[str, OneOf(DECODINGS)] = "beside"
    """beside: fetched blocks are decoded beside everything else; gpu: on the node's GPU, where no token is
    decoded meanwhile; smartnic: on the network adapter. With `coded_share` or a codec."""
    decoding_slowdown: Annotated[float, Within(0.0, 100.0)] = 0.0
    """gpu: tokens go on instead, and take so many times as long, as do blocks meanwhile."""
    decode_gbyte_s: Annotated[float, Within(0.0, 1e5)] = 0.0
    """Of plain KV that is decoded; 0: what `coder` says."""
    coded_share: Annotated[float | None, Within(0.01, 1.0)] = None
    """Part of a plain block that a coded one has; default: what the codec was measured to make."""
    attention: Annotated[str, OneOf(ATTENTION_SHARES)] = "full"
    """full: every pair of tokens, as Mooncake counts; causal: half of them, as engines' kernels compute."""


@dataclass(frozen=True, slots=True, config=DECLARED)
class Nodes:
    """The inference nodes."""

    count: Annotated[int, Within(1, 256), Variable("HOSTS")] = 8
    """Inference nodes; default: the topology's, 8 for star."""
    gpu_gb: Annotated[float, Within(0.0, 1e6), Variable("GPU_GB")] = 32.0
    """GPU memory that holds blocks for reuse."""
    gpu_blocks: Annotated[int | None, Within(1, 1_000_000), Variable("GPU_BLOCKS"), Instead("gpu_gb")] = None
    """The same in blocks, instead of gpu_gb."""
    dram_gb: Annotated[float, Within(0.0, 1e7), Variable("DRAM_GB")] = 256.0
    """Local DRAM for blocks; 0: none."""
    dram_blocks: Annotated[int | None, Within(1, 1_000_000), Variable("DRAM_BLOCKS"), Instead("dram_gb")] = (
        None
    )
    """The same in blocks, instead of dram_gb."""
    decode: Annotated[str, OneOf(("apart", "batched", "steps", "budget"))] = "apart"
    """apart: other nodes decode; batched: the same GPU, prefill in chunks; steps: vLLM's steps, which loads
    hold up (steps.py); budget: fixed times within a budget of tokens (budget.py), and nothing is fetched."""
    budget_tokens: Annotated[int, Within(1, 10_000_000)] = 8192
    """budget: computed and answered tokens of the requests that are served at once."""
    request_ms: Annotated[float, Within(0.0, 1e6)] = 12.27
    """budget: to the first token, besides what the prompt's tokens take."""
    computed_token_us: Annotated[float, Within(0.0, 1e6)] = 14.04
    """budget: for each token of a prompt that is computed."""
    held_token_us: Annotated[float, Within(0.0, 1e6)] = 0.94
    """budget: for each token of a prompt that is held."""
    output_token_ms: Annotated[float, Within(0.0, 1e6)] = 3.0
    """budget: for each token of a prompt that is not held, or is; of an answer after the first."""
    running_gb: Annotated[float, Within(0.0, 1e6)] = 64.0
    """batched: GPU memory for the requests that run; who finds no room waits."""
    chunk_tokens: Annotated[int, Within(1, 1_000_000)] = 8192
    """batched: tokens of a step. Default: max_num_batched_tokens of vLLM's server on 70 GB and more."""
    engine_token_us: Annotated[float, Within(0.0, 1e6)] = 0.0
    """What the engine does for each token of a prompt while its GPU waits: hashing, block tables, copies."""
    loading: Annotated[str, OneOf(("overlapped", "blocking"))] = "overlapped"
    """blocking: blocks are fetched in the request's turn at the GPU, and nothing is computed meanwhile."""
    asking: Annotated[str, OneOf(("chain", "block"))] = "chain"
    """chain: all missing blocks are named at once; block: the next when the one before it has come."""
    tiers: Annotated[str, OneOf(RULES), Variable("TIERS")] = DEFAULT_RULE
    """How blocks move between GPU memory and DRAM (docs/tiers.md)."""
    stores_new: bool = True
    """false: what is computed is not stored, so that all that can be fetched was there at the beginning."""
    gate: Annotated[str, OneOf((*GATES, "never")), Variable("GATE")] = "always"
    """Whether missing blocks are fetched: always, never, or as comparing that with computing says,
    under the load seen now."""
    blend: Annotated[bool, Variable("BLEND")] = False
    """Whether chunks behind a request's prefix are fetched by chunk key and blended (CacheBlend)."""
    blend_share: Annotated[float, Within(0.0, 1.0), Variable("BLEND_SHARE")] = DEFAULT_SHARE
    """With `blend`: share of the chunks' tokens that is recomputed."""
    hints: Annotated[str, OneOf(HINTS), Variable("HINTS")] = ANSWERS
    """What the gate knows of homes: their last answers; what they hold and have promised, asked first;
    that, and what the switch's pool holds."""
    joining: Annotated[int, Within(0, 255), Variable("JOINING")] = 0
    """So many nodes, the last, get requests only when half of these have come (joins_at); with PUSH the
    switch pushes to them what was asked for most."""
    joins_at: Annotated[float, Within(0.0, 1.0)] = 0.5
    """The share of the requests after which these are also sent some."""
    lead_s: Annotated[float, Within(0.0, 1e6)] = 1.0
    """How long before that they are there, and are made warm."""
    warm: Annotated[str, OneOf(WARMTHS)] = "no"
    """What was used most is in every node, or with `joining` in those that join: there when the run begins,
    or they join, or pushed then, by homes (unicast, multicast) or by what the switches' pools hold (pool)."""
    warm_gb: Annotated[float, Within(0.0, 1e6)] = 16.0
    """Of blocks that make a node warm."""


@dataclass(frozen=True, slots=True, config=DECLARED)
class Network:
    """Links and the fabric between nodes and storage."""

    topology: Annotated[str, OneOf(TOPOLOGIES), Variable("TOPO")] = "star"
    """Topology of the switches."""
    leaves: Annotated[int | None, Within(1, 64), Variable("LEAVES")] = None
    """Leaf switches of leafspine and tree."""
    spines: Annotated[int | None, Within(1, 64), Variable("SPINES")] = None
    """Spine switches of leafspine."""
    pods: Annotated[int | None, Within(2, 64), Variable("PODS")] = None
    """Pods of fattree."""
    link_gbit_s: Annotated[float, Within(0.0, 1e6), Variable("LINK_GBIT")] = 200.0
    """Rate of a host's link."""
    latency_us: Annotated[float, Within(0.0, 1e6)] = 2.0
    """Of one hop: propagation and switching."""
    fragments: Annotated[int, Within(1, 65_535)] = 32
    """Pieces of a block in which flow control counts (docs/protocol.md)."""
    segments: Annotated[int, Within(1, 64)] = 1
    """Pieces in which the simulator moves a block behind its probe: more are finer and slower."""
    target_backlog_ms: Annotated[float, Within(0.0, 1e6)] = 20.0
    """A home that reports more than that waiting shrinks the windows of those who ask."""
    header_share: Annotated[float, Within(0.0, 2.0)] = 0.02
    """Header bytes per byte of value."""
    request_share: Annotated[float, Within(0.0, 2.0)] = 0.02
    """Bytes of requests (and acknowledgements) per byte of value."""
    requests_first: Annotated[bool, Variable("REQUESTS_FIRST")] = False
    """Requests and acknowledgements have a queue of their own at each port, before blocks."""


@dataclass(frozen=True, slots=True, config=DECLARED)
class Storage:
    """Where blocks live: storage nodes behind the fabric, a memory pool that nodes read directly, or the
    nodes' own memory, which they read from one another (peers)."""

    kind: Annotated[str, OneOf(("stores", "direct", "peers"))] = "stores"
    """Where blocks live; see above."""
    count: Annotated[int, Within(0, 256), Variable("STORES")] = 2
    """Storage nodes; default: the topology's, 2 for star; 0: nodes lend one another their memory."""
    dram_gb: Annotated[float, Within(0.0, 1e8), Variable("STORE_GB")] = 4000.0
    """Of each storage node."""
    dram_blocks: Annotated[
        int | None, Within(1, 10_000_000), Variable("STORE_BLOCKS"), Instead("dram_gb")
    ] = None
    """The same in blocks, instead of dram_gb; the rest is on SSD."""
    link_gbit_s: Annotated[
        tuple[Annotated[float, Within(0.001, 100_000)], ...], Each(), Variable("STORE_GBIT")
    ] = ()
    """Rates of the storage nodes' links, one for each, where they differ: 200,25."""
    replicas: Annotated[int, Within(1, 3), Variable("REPLICAS")] = 1
    """Storage nodes that keep each block."""
    durable: Annotated[bool, Variable("DURABLE")] = False
    """A block counts as stored when it is on its homes' disks."""
    read_ahead: Annotated[int, Within(0, 1024), Variable("READ_AHEAD")] = 0
    """Blocks of a chain that storage nodes read ahead from SSD."""
    ssd_gb: Annotated[float, Within(0.0, 1e9)] = 8000.0
    """Room on the SSDs of each storage node."""
    ssd_gbyte_s: Annotated[float, Within(0.0, 1e5), Variable("SSD_GBYTE")] = 12.0
    """Rate of a storage node's SSDs."""
    own_gb: Annotated[float, Within(0.0, 1e7)] = 0.0
    """peers: of each node's DRAM what it would have without lending; only what is beyond is the cache's."""


@dataclass(frozen=True, slots=True, config=DECLARED)
class Pool:
    """The pool in the switches."""

    memory: Annotated[str, OneOf(("none", "sram", "dram"))] = "sram"
    """sram: served at line rate; dram: attached to the switch, at `memory_gbyte_s`."""
    size_gb: Annotated[float, Within(0.0, 1e6), Variable("POOL_GB")] = 25.0
    """Of each switch."""
    blocks: Annotated[int | None, Within(1, MAX_POOL_BLOCKS), Variable("POOL_BLOCKS"), Instead("size_gb")] = (
        None
    )
    """The same in blocks as the model keeps them, instead of size_gb."""
    placement: Annotated[str, OneOf(PLACEMENTS), Variable("PLACEMENT")] = AUTO
    """Which of several switches keep a block; the simulator has auto."""
    memory_gbyte_s: Annotated[float, Within(0.0, 1e6)] = 400.0
    """dram: rate of the memory, for reads and fills together."""
    memory_latency_us: Annotated[float, Within(0.0, 1e6)] = 0.75
    """dram: time until a read begins."""
    index_entries: Annotated[int, Within(1, 1 << 31)] = 1 << 20
    """Blocks that the pool's index has room for."""
    policy: Annotated[str, OneOf(POLICY_NAMES), Variable("POLICY")] = "reuse"
    """Policy of the pool."""
    merging: bool = True
    """Whether requests for what is in flight wait in the switch."""
    multicast: bool = True
    """false: copies of a merged reply go through the switch's recirculation port, one after the other."""
    pending_cells: Annotated[int, Within(1, 1 << 31)] = 16_384
    """Fragments that requests can wait for at the same time."""
    pending_timeout_s: Annotated[float, Within(1e-6, 1e3)] = 0.2
    """Time after which waiting requests are given up."""
    sketch_epoch_s: Annotated[float, Within(1e-6, 1e6)] = 67.1
    """Counts of misses are halved every epoch."""


@dataclass(frozen=True, slots=True, config=DECLARED)
class Control:
    """The controller and its costs."""

    report_count: Annotated[int, Within(1, 0x8000)] = 2
    """Misses of a block in an epoch after which the switch reports it."""
    max_digests_per_s: Annotated[int, Within(1, 1_000_000)] = 500
    """Digests that a switch sends."""
    fill: Annotated[str, OneOf(FILL_MODES), Variable("FILL")] = "on_the_way"
    """When an admitted block is stored: when it next passes, fetched now, or now if its home is
    idle."""
    eviction: Annotated[str, OneOf((*EVICTION_MODES, AUTO)), Variable("EVICTION")] = "drop"
    """Which evicted blocks the switch sends to a home without them; auto: value, or drop where nodes lend."""
    push: Annotated[bool, Variable("PUSH")] = False
    """Prefixes that nodes keep asking for are multicast to them unasked."""
    expects: Annotated[bool, Variable("EXPECT")] = False
    """Nodes tell the controller of their switch of blocks that they begin to compute and will store, and PUTs
    fill the pool as they pass. Live nodes do unless told otherwise; false is what the study was made with."""
    digest_latency_s: Annotated[float, Within(0.0, 1e3)] = 0.005
    """Time of a digest from the switch to the controller."""
    list_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """Digests leave the switch in lists, so long after the first of a list, or sooner where that one ends a
    pause (v1model.binding.digests); 0: each by itself."""
    digest_cpu_s: Annotated[float, Within(0.0, 1e3)] = 66e-6
    """Controller time for a digest."""
    writes_per_s: Annotated[float, Within(0.0, 1e9)] = 1150.0
    """Table updates a second that a switch takes."""
    write_latency_s: Annotated[float, Within(0.0, 1e3)] = 0.002
    """Time of a table update from the controller to the switch."""
    read_entry_s: Annotated[float, Within(0.0, 1e3)] = 2e-5
    """Controller time to read one hit counter."""
    digest_bytes: Annotated[int, Within(0, 1 << 20)] = 80
    """Size of a digest."""
    update_bytes: Annotated[int, Within(0, 1 << 20)] = 120
    """Size of a table update."""
    read_entry_bytes: Annotated[int, Within(0, 1 << 20)] = 90
    """Size of a hit counter that is read."""


@dataclass(frozen=True, slots=True, config=DECLARED)
class Direct:
    """A memory pool that nodes read directly (storage.kind = "direct"): DRAM of others over RDMA, or CXL.
    Of these, peers have `lookup_s`, `block_s`, `peer_share` and `front`; their links are the network's."""

    size_gb: Annotated[float, Within(0.0, 1e8)] = 2000.0
    """Memory of the pool."""
    devices: Annotated[int, Within(1, 4096)] = 32
    """Memory devices of the pool."""
    device_gbyte_s: Annotated[float, Within(0.0, 1e6)] = 22.5
    """Rate of a device, each way."""
    interleaved: bool = True
    """Every block spread over all devices; false: a block lies on one, in the order of writing."""
    device_gb: Annotated[float, Within(0.0, 1e8)] = 256.0
    """Not interleaved: one device is filled before the next."""
    nodes_per_adapter: Annotated[int, Within(1, 256)] = 1
    """Inference nodes that share a server's adapters."""
    read_gbyte_s: Annotated[float, Within(0.0, 1e6)] = 46.0
    """Of a server's adapters together, towards the GPUs."""
    write_gbyte_s: Annotated[float, Within(0.0, 1e6)] = 33.0
    """The same from the GPUs."""
    copy_gbyte_s: Annotated[float, Within(0.0, 1e6)] = 0.0
    """Of what the client itself copies, one block after the other; 0: it copies nothing."""
    lookup_s: Annotated[float, Within(0.0, 10.0)] = 2.11e-6
    """One question to the index."""
    block_s: Annotated[float, Within(0.0, 10.0)] = 10.55e-6
    """Fixed cost of moving one block."""
    peer_share: Annotated[float, Within(0.01, 1.0)] = 1.0
    """Of a link's rate that a node's transfers to others reach."""
    front: Annotated[str, OneOf(("none", "merge", "pool", "whole", SWITCHES))] = "none"
    """A switch in front of it that merges reads, or that also keeps blocks in a pool of `pool.size_gb` a
    switch; whole: has every block that anybody has, a bound. These are idealised, and one switch. switches:
    peers answer GETs that pass the network's switches, which have the pool of [pool] and its controller."""
