"""Tables of a scenario that emulator and simulator share: one class is one TOML table, one field one key.

Sizes and rates are real ones. Keys with a variable's name are those that the emulator has. The others are
only for the simulator, because the emulator has no use for them or measures them.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator
from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, Each, InsteadOf, Known, OneOf, Variable, Within
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
"""Largest number of entries of a pool's index."""
WARMTHS = ("no", "unicast", "multicast", "pool", "there")
SWITCH_ROUTERS = ("load_reports", "pinned_reports")
ROUTERS = ("longest_prefix", *SWITCH_ROUTERS)
SWITCHES = "switches"
"""Value of `direct.front` that stands for the network's real switches, not an idealised one."""


@dataclass(frozen=True, slots=True, config=DECLARED)
class Workload(TraceSource):
    """Requests that the system serves."""

    shape: Annotated[str, AfterValidator(played_shape), Variable("SHAPE")] = "agents"
    """Shape of the generated trace."""
    requests: Annotated[int | None, Within(1, 10_000_000), Variable("REQUESTS")] = None
    """Number of requests; default: 1,000 simulated, 160 emulated, or 600 emulated of a TRACE."""
    start_s: Annotated[float | None, Within(0.0, 1e9), Variable("START")] = None
    """Second of the trace to begin at, with earlier blocks stored; default: a third into it."""
    load: Annotated[float, Within(1e-3, 1e3)] = 1.0
    """Factor by which requests arrive faster than in the trace."""
    reuse: Annotated[float, Within(0.0, 1.0)] = 1.0
    """Share of the requests that keep their prefix; the others get unique prompts."""
    jitter_s: Annotated[float, Within(0.0, 3600.0)] = 0.0
    """Largest delay with which requests reach their nodes, as with hosts that don't wake in time."""
    clients: Annotated[int, Within(0, 100_000)] = 0
    """Clients of a closed loop, each of which waits for an answer before it asks again; 0: the trace's
    times."""
    hit_share: Annotated[float | None, Within(0.0, 1.0)] = None
    """Share of each prompt that is stored at the start. Replaces the trace: prompts share nothing."""
    hits_whole: bool = False
    """With `hit_share`: whether that share of the prompts is stored whole, and the others not at all."""
    prompt_tokens: Annotated[int, Within(1, 10_000_000)] = 16_000
    """With `hit_share`: tokens of the shortest prompt."""
    prompt_excess_tokens: Annotated[float, Within(0.0, 1e7)] = 0.0
    """With `hit_share`: mean number of tokens beyond the shortest prompt, exponentially distributed."""
    output_tokens: Annotated[int, Within(1, 1_000_000)] = 100
    """With `hit_share`: tokens of each answer."""
    output_tokens_most: Annotated[int, Within(0, 1_000_000)] = 0
    """With `hit_share`: largest length of an answer; lengths are geometric with mean `output_tokens`. 0: all
    are equal."""
    scheduler: Annotated[str, OneOf((*SCHEDULERS, *ROUTERS)), Variable("SCHEDULER")] = "random"
    """Scheduler, which chooses a request's node; longest_prefix, load_reports and pinned_reports are the
    simulator's routers of [routing]."""
    estimate: Annotated[str, OneOf(("overlapped", "paper"))] = "overlapped"
    """Conductor's estimate. overlapped: a first token waits for the longer of queue and transfer; paper: for
    both in turn, as in Mooncake's algorithm 1. It only decides which node serves."""
    ttft_slo_s: Annotated[float | None, Within(0.0, 1e6), Variable("TTFT_SLO")] = None
    """Target time to the first token of LEVEL=adaptive; SCHEDULER=conductor refuses requests that it expects
    to miss it. The table says how many met it."""
    tenants: Annotated[int, Within(0, 64), Variable("TENANTS")] = 0
    """Tenants to which the nodes belong in turn. Each has a secret, an equal share of the pool, and nothing
    in the stores at the start; 0: all use the public namespace."""
    seed: Annotated[int, Within(0, 1 << 31), Variable("SEED")] = 1
    """Seed of generator, scheduler and policy."""

    @property
    def simulated_requests(self) -> int:
        """Return the number of requests of a simulation."""
        return self.requests or SIMULATED_REQUESTS


DECODINGS = ("beside", "gpu", "smartnic")


def preset_or_folder(name: str) -> str:
    """Return the name; raises ValueError if it is neither a preset nor a folder with a model."""
    if name not in MODELS and not (Path(name) / "config.json").is_file():
        advice = OneOf(MODELS).advice(name)
        raise ValueError(f"there is no {name!r}: {advice}, or a folder with a model's config.json")
    return name


@dataclass(frozen=True, slots=True, config=DECLARED)
class Model:
    """Model that is served, and the accelerators of one node."""

    name: Annotated[str, AfterValidator(preset_or_folder), Known(MODELS), Variable("MODEL")] = DEFAULT_MODEL
    """Preset, or a Hugging Face folder, whose real KV the emulator's blocks then hold, at the times of
    llama3-70b."""
    layers: Annotated[int | None, Within(1, 10_000)] = None
    """Layers of a model of its own instead of a preset, which also needs the next four keys."""
    hidden: Annotated[int | None, Within(1, 1_000_000)] = None
    """Width of the model."""
    kv_values_per_layer: Annotated[int | None, Within(1, 10_000_000)] = None
    """Values per token and layer: 2 * KV heads * head size; with MLA the latent and the rope dimensions."""
    kv_dtype_bytes: Annotated[float | None, Within(0.125, 8.0)] = None
    """Size of a value of KV."""
    weights: Annotated[float | None, Within(1.0, 1e15)] = None
    """Weights read by one decoded token; the active ones of a mixture of experts."""
    gpu: Annotated[str, OneOf(GPUS), Variable("GPU")] = DEFAULT_GPU
    """Kind of a node's GPUs."""
    gpus: Annotated[int, Within(1, 1024)] = 8
    """Number of GPUs in a node."""
    block_tokens: Annotated[int | None, Within(1, 65_536), Variable("BLOCK_TOKENS")] = None
    """Tokens of a block, such as vLLM's 16 or LMCache's 256: blocks of a TRACE are cut or joined, generated
    prompts are cut; default: the trace's own, 512 if generated."""
    prefill_utilisation: Annotated[float, Within(0.01, 1.0)] = 0.5
    """Share of the GPUs' peak arithmetic that a prefill reaches."""
    memory_utilisation: Annotated[float, Within(0.01, 1.0)] = 0.7
    """Share of the GPUs' memory bandwidth that decoding reaches."""
    launch_ms: Annotated[float, Within(0.0, 1000.0)] = 0.0
    """Time of a step beside arithmetic and memory; above 0 a prefill also reads the weights once."""
    codec: Annotated[str, OneOf((NONE, *codecs())), Variable("CODEC")] = NONE
    """Codec of blocks that leave a node; in the simulator they have the mean of the measured sizes."""
    level: Annotated[Annotated[int, Within(0, 99)] | Literal["adaptive"] | None, Variable("LEVEL")] = None
    """Level of the codec; default: its own (docs/blocks.md); adaptive: one for each chunk of a chain, chosen
    so that the first token comes within TTFT_SLO."""
    coder: Annotated[str, OneOf(CODERS), Variable("CODER")] = CPU
    """Time that coding takes. cpu: as measured on a CPU; instant: none, as CacheGen says of its GPU kernels.
    In the simulator only decoding takes time."""
    decoding: Annotated[str, OneOf(DECODINGS)] = "beside"
    """Place where fetched blocks are decoded. beside: beside everything else; gpu: on the node's GPU, which
    decodes no token meanwhile; smartnic: on the network adapter. With `coded_share` or a codec."""
    decoding_slowdown: Annotated[float, Within(0.0, 100.0)] = 0.0
    """gpu: factor by which tokens and decoded blocks slow each other down; 0: no token is decoded
    meanwhile."""
    decode_gbyte_s: Annotated[float, Within(0.0, 1e5)] = 0.0
    """Rate of decoding, in bytes of plain KV; 0: as `coder` says."""
    coded_share: Annotated[float | None, Within(0.01, 1.0)] = None
    """Share of a plain block's bytes that a coded one has; default: the codec's measured share."""
    attention: Annotated[str, OneOf(ATTENTION_SHARES)] = "full"
    """Pairs of tokens that attention counts. full: every pair, as in Mooncake; causal: half of them, as
    engines' kernels compute."""


@dataclass(frozen=True, slots=True, config=DECLARED)
class Nodes:
    """Inference nodes."""

    count: Annotated[int, Within(1, 256), Variable("HOSTS")] = 8
    """Number of inference nodes; default: the topology's, 8 for star."""
    gpu_gb: Annotated[float, Within(0.0, 1e6), Variable("GPU_GB")] = 32.0
    """GPU memory that holds blocks for reuse."""
    gpu_blocks: Annotated[int | None, Within(1, 1_000_000), Variable("GPU_BLOCKS"), InsteadOf("gpu_gb")] = (
        None
    )
    """The same in blocks, instead of gpu_gb."""
    dram_gb: Annotated[float, Within(0.0, 1e7), Variable("DRAM_GB")] = 256.0
    """Local DRAM for blocks; 0: none."""
    dram_blocks: Annotated[
        int | None, Within(1, 1_000_000), Variable("DRAM_BLOCKS"), InsteadOf("dram_gb")
    ] = None
    """The same in blocks, instead of dram_gb."""
    decode: Annotated[str, OneOf(("apart", "batched", "steps", "budget"))] = "apart"
    """Way of decoding. apart: other nodes decode; batched: the same GPU, with prefills in chunks; steps:
    vLLM's steps, which wait for loads (steps.py); budget: fixed times within a budget of tokens (budget.py),
    without fetching."""
    budget_tokens: Annotated[int, Within(1, 10_000_000)] = 8192
    """budget: largest number of computed and answered tokens of the requests that are served at once."""
    request_ms: Annotated[float, Within(0.0, 1e6)] = 12.27
    """budget: fixed part of the time to the first token."""
    computed_token_us: Annotated[float, Within(0.0, 1e6)] = 14.04
    """budget: time for each token of a prompt that is computed."""
    held_token_us: Annotated[float, Within(0.0, 1e6)] = 0.94
    """budget: time for each token of a prompt that is held."""
    output_token_ms: Annotated[float, Within(0.0, 1e6)] = 3.0
    """budget: time for each token of an answer after the first."""
    running_gb: Annotated[float, Within(0.0, 1e6)] = 64.0
    """batched: GPU memory for the requests that run; requests without room wait."""
    chunk_tokens: Annotated[int, Within(1, 1_000_000)] = 8192
    """batched: tokens of a step; default: max_num_batched_tokens of vLLM's server on GPUs of 70 GB and
    more."""
    engine_token_us: Annotated[float, Within(0.0, 1e6)] = 0.0
    """Time of the engine's own work for each token of a prompt, while its GPU waits: hashing, block tables,
    copies."""
    loading: Annotated[str, OneOf(("overlapped", "blocking"))] = "overlapped"
    """Way of loading. overlapped: blocks come while the GPU computes for others; blocking: they come in the
    request's turn at the GPU, which computes nothing meanwhile."""
    asking: Annotated[str, OneOf(("chain", "block"))] = "chain"
    """Order of requests for blocks. chain: all missing blocks are requested at once; block: each when the one
    before has come."""
    tiers: Annotated[str, OneOf(RULES), Variable("TIERS")] = DEFAULT_RULE
    """Rule by which blocks move between GPU memory and DRAM (docs/tiers.md)."""
    stores_new: bool = True
    """Whether computed blocks are stored; if not, only blocks that were there at the start can be fetched."""
    gate: Annotated[str, OneOf((*GATES, "never")), Variable("GATE")] = "always"
    """Whether missing blocks are fetched: always, never, or if that is faster than computing under the
    present load (compare)."""
    blend: Annotated[bool, Variable("BLEND")] = False
    """Whether chunks behind a request's prefix are fetched by chunk key and blended (CacheBlend)."""
    blend_share: Annotated[float, Within(0.0, 1.0), Variable("BLEND_SHARE")] = DEFAULT_SHARE
    """With `blend`: share of the chunks' tokens that is recomputed."""
    hints: Annotated[str, OneOf(HINTS), Variable("HINTS")] = ANSWERS
    """Knowledge of the gate about homes. answers: their last answers; homes: also what they hold and have
    promised, asked first; switch: also what the switch's pool holds."""
    joining: Annotated[int, Within(0, 255), Variable("JOINING")] = 0
    """Number of nodes, the last ones, that get requests only after half of all requests have come (joins_at);
    with PUSH the switch pushes to them what was asked for most."""
    joins_at: Annotated[float, Within(0.0, 1.0)] = 0.5
    """Share of the requests after which joining nodes also get some."""
    lead_s: Annotated[float, Within(0.0, 1e6)] = 1.0
    """Time by which joining nodes are there, and are warmed, before they get requests."""
    warm: Annotated[str, OneOf(WARMTHS)] = "no"
    """Way in which nodes come to hold the most used blocks: all nodes at the start, or joining ones when they
    join. there: they hold them; unicast, multicast: homes send them; pool: the switches' pools send what they
    hold."""
    warm_gb: Annotated[float, Within(0.0, 1e6)] = 16.0
    """Size of the blocks that make a node warm."""


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
    """Latency of one hop: propagation and switching."""
    fragments: Annotated[int, Within(1, 65_535)] = 32
    """Fragments of a block, in which flow control counts (docs/protocol.md)."""
    segments: Annotated[int, Within(1, 64)] = 1
    """Segments in which the simulator moves a block behind its probe: more are finer and slower."""
    target_backlog_ms: Annotated[float, Within(0.0, 1e6)] = 20.0
    """Backlog at a home above which its clients shrink their windows."""
    header_share: Annotated[float, Within(0.0, 2.0)] = 0.02
    """Header bytes per byte of value."""
    request_share: Annotated[float, Within(0.0, 2.0)] = 0.02
    """Bytes of requests (and acknowledgements) per byte of value."""
    requests_first: Annotated[bool, Variable("REQUESTS_FIRST")] = False
    """Whether requests and acknowledgements have a queue of their own at each port, before blocks."""


@dataclass(frozen=True, slots=True, config=DECLARED)
class Storage:
    """Storage of blocks: storage nodes behind the fabric (stores), a memory pool that nodes read directly
    (direct), or the nodes' own memory, which they read from each other (peers)."""

    kind: Annotated[str, OneOf(("stores", "direct", "peers"))] = "stores"
    """Kind of storage: stores, direct or peers."""
    count: Annotated[int, Within(0, 256), Variable("STORES")] = 2
    """Number of storage nodes; default: the topology's, 2 for star; 0: nodes lend each other their memory."""
    dram_gb: Annotated[float, Within(0.0, 1e8), Variable("STORE_GB")] = 4000.0
    """DRAM of each storage node."""
    dram_blocks: Annotated[
        int | None, Within(1, 10_000_000), Variable("STORE_BLOCKS"), InsteadOf("dram_gb")
    ] = None
    """The same in blocks, instead of dram_gb; the rest is on SSD."""
    link_gbit_s: Annotated[
        tuple[Annotated[float, Within(0.001, 100_000)], ...], Each(), Variable("STORE_GBIT")
    ] = ()
    """Rates of the storage nodes' links, one for each, if they differ: 200,25."""
    replicas: Annotated[int, Within(1, 3), Variable("REPLICAS")] = 1
    """Number of storage nodes that hold each block."""
    durable: Annotated[bool, Variable("DURABLE")] = False
    """Whether a block counts as stored only when it is on its homes' disks."""
    read_ahead: Annotated[int, Within(0, 1024), Variable("READ_AHEAD")] = 0
    """Number of blocks of a chain that storage nodes read ahead from SSD."""
    ssd_gb: Annotated[float, Within(0.0, 1e9)] = 8000.0
    """Size of each storage node's SSDs."""
    ssd_gbyte_s: Annotated[float, Within(0.0, 1e5), Variable("SSD_GBYTE")] = 12.0
    """Rate of a storage node's SSDs."""
    own_gb: Annotated[float, Within(0.0, 1e7)] = 0.0
    """peers: DRAM that each node would have without lending; only the rest counts as the cache's cost."""


@dataclass(frozen=True, slots=True, config=DECLARED)
class Pool:
    """Pool in the switches."""

    memory: Annotated[str, OneOf(("none", "sram", "dram"))] = "sram"
    """Memory of the pool. none: no pool; sram: served at line rate; dram: attached to the switch, at
    `memory_gbyte_s`."""
    size_gb: Annotated[float, Within(0.0, 1e6), Variable("POOL_GB")] = 25.0
    """Size of each switch's pool."""
    blocks: Annotated[
        int | None, Within(1, MAX_POOL_BLOCKS), Variable("POOL_BLOCKS"), InsteadOf("size_gb")
    ] = None
    """The same in blocks as the model keeps them, instead of size_gb."""
    placement: Annotated[str, OneOf(PLACEMENTS), Variable("PLACEMENT")] = AUTO
    """Rule for which of several switches keep a block; the simulator has auto."""
    memory_gbyte_s: Annotated[float, Within(0.0, 1e6)] = 400.0
    """dram: rate of the memory, for reads and fills together."""
    memory_latency_us: Annotated[float, Within(0.0, 1e6)] = 0.75
    """dram: time until a read begins."""
    index_entries: Annotated[int, Within(1, 1 << 31)] = 1 << 20
    """Number of blocks that fit into the pool's index."""
    policy: Annotated[str, OneOf(POLICY_NAMES), Variable("POLICY")] = "reuse"
    """Policy of the pool."""
    merging: bool = True
    """Whether requests for a fragment in flight wait in the switch for its one reply."""
    multicast: bool = True
    """Whether the switch multicasts a merged reply; if not, copies pass its recirculation port one after the
    other."""
    pending_cells: Annotated[int, Within(1, 1 << 31)] = 16_384
    """Number of fragments that requests can wait for at the same time."""
    pending_timeout_s: Annotated[float, Within(1e-6, 1e3)] = 0.2
    """Time after which waiting requests are given up."""
    sketch_epoch_s: Annotated[float, Within(1e-6, 1e6)] = 67.1
    """Period after which the counts of misses are halved."""


@dataclass(frozen=True, slots=True, config=DECLARED)
class Control:
    """Controller and its costs."""

    report_count: Annotated[int, Within(1, 0x8000)] = 2
    """Misses of a block within an epoch after which the switch reports it."""
    max_digests_per_s: Annotated[int, Within(1, 1_000_000)] = 500
    """Digests per second above which the controller makes the switch report less."""
    fill: Annotated[str, OneOf(FILL_MODES), Variable("FILL")] = "on_the_way"
    """Time at which an admitted block is stored. on_the_way: when it next passes; now: by a fetch at once;
    idle: by a fetch at once if its home is idle."""
    eviction: Annotated[str, OneOf((*EVICTION_MODES, AUTO)), Variable("EVICTION")] = "drop"
    """Evicted blocks that the switch sends to a home without them; auto: value, or drop if nodes lend."""
    push: Annotated[bool, Variable("PUSH")] = False
    """Whether prefixes that nodes keep asking for are multicast to them without a request."""
    expects: Annotated[bool, Variable("EXPECT")] = False
    """Whether nodes announce to their switch's controller the blocks that they begin to compute and will
    store. PUTs of these then fill the pool as they pass. Live nodes do so by default; the study was made
    without."""
    digest_latency_s: Annotated[float, Within(0.0, 1e3)] = 0.005
    """Time of a digest from the switch to the controller."""
    list_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """Time for which a switch gathers digests in a list, from its first one on; less if that one ends a pause
    (v1model.binding.digests). 0: each digest leaves by itself."""
    digest_cpu_s: Annotated[float, Within(0.0, 1e3)] = 66e-6
    """Controller time for a digest."""
    writes_per_s: Annotated[float, Within(0.0, 1e9)] = 1150.0
    """Table updates per second that a switch takes."""
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
    """Memory pool that nodes read directly (storage.kind = "direct"): DRAM of others over RDMA, or CXL. Of
    these keys, peers have `lookup_s`, `block_s`, `peer_share` and `front`; their links are the network's."""

    size_gb: Annotated[float, Within(0.0, 1e8)] = 2000.0
    """Size of the pool."""
    devices: Annotated[int, Within(1, 4096)] = 32
    """Number of the pool's memory devices."""
    device_gbyte_s: Annotated[float, Within(0.0, 1e6)] = 22.5
    """Rate of a device, each way."""
    interleaved: bool = True
    """Whether every block is spread over all devices; if not, a block is on one, in the order of writing."""
    device_gb: Annotated[float, Within(0.0, 1e8)] = 256.0
    """Size of a device if blocks are not interleaved; it is filled before the next."""
    nodes_per_adapter: Annotated[int, Within(1, 256)] = 1
    """Inference nodes that share a server's adapters."""
    read_gbyte_s: Annotated[float, Within(0.0, 1e6)] = 46.0
    """Rate of a server's adapters together, towards the GPUs."""
    write_gbyte_s: Annotated[float, Within(0.0, 1e6)] = 33.0
    """Rate of a server's adapters together, from the GPUs."""
    copy_gbyte_s: Annotated[float, Within(0.0, 1e6)] = 0.0
    """Rate at which the client itself copies blocks, one after the other; 0: it copies nothing."""
    lookup_s: Annotated[float, Within(0.0, 10.0)] = 2.11e-6
    """Time of one question to the index."""
    block_s: Annotated[float, Within(0.0, 10.0)] = 10.55e-6
    """Fixed time to move one block."""
    peer_share: Annotated[float, Within(0.01, 1.0)] = 1.0
    """Share of a link's rate that a node's transfers to others reach."""
    front: Annotated[str, OneOf(("none", "merge", "pool", "whole", SWITCHES))] = "none"
    """Switch in front of the pool. merge: merges reads; pool: also keeps blocks, in `pool.size_gb` a switch;
    whole: has every block that anybody has, a bound. These are idealised, and one switch. switches: peers
    answer GETs that pass the network's switches, with the pool of [pool] and its controller."""
