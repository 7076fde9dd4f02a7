"""The demo's options."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator
from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, Each, OneOf, Variable, Within
from commands.options import read
from commands.trace_options import TraceOptions
from controller.config import AUTO, EVICTION_MODES, FILL_MODES, ON_THE_WAY, PLACEMENTS
from controller.policies import POLICY_NAMES
from emulator.modes import COMPARED, MODES
from hostlib.model.gate import ANSWERS, HINTS
from hostlib.model.tier_rules import DEFAULT_RULE, RULES
from topologies.engines import ENGINES
from topologies.registry import TOPOLOGIES
from workload.blend import DEFAULT_SHARE
from workload.compression import CODERS, CPU, NONE, codecs
from workload.cost import DEFAULT_MODEL, GPUS, MODELS
from workload.generate import DEFAULT_SHAPE
from workload.schedule import SCHEDULERS
from workload.shapes import played_shape

MAX_POOL_BLOCKS = 65536
"""Entries that a pool index is made for."""


class ModelChoice(NamedTuple):
    """MODEL: a preset, or a folder with a model whose KV is real while times are a preset's."""

    preset: str
    folder: Path | None = None


def _preset_or_folder(name: str) -> str:
    """Raises ValueError for what is neither a preset nor a folder with a model."""
    if name not in MODELS and not (Path(name) / "config.json").is_file():
        advice = OneOf(MODELS).advice(name)
        raise ValueError(f"there is no {name!r}: {advice}, or a folder with a model's config.json")
    return name


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class RunOptions(TraceOptions):
    """What one `make run` plays, and on what."""

    engine: Annotated[str, OneOf(ENGINES)] = "embedded"
    """Switch engine."""
    topology: Annotated[str, OneOf(TOPOLOGIES), Variable("TOPO")] = "star"
    """Topology."""
    shape: Annotated[str, AfterValidator(played_shape)] = DEFAULT_SHAPE
    """Shape of the generated trace, behind which parameters may stand: swarm:sub_agents=64
    (docs/workloads.md)."""
    requests: Annotated[int | None, Within(1, 1_000_000)] = None
    """Requests to play; default: 240 generated, 600 of a TRACE."""
    start_s: Annotated[float | None, Within(0, 1e9), Variable("START")] = None
    """Second to begin at; what came before is in the stores."""
    speed: Annotated[float | None, Within(0.01, 1000)] = None
    """Trace seconds a second; default: plays in 32 s."""
    hosts: Annotated[int | None, Within(1, 256)] = None
    """Inference nodes; default: the topology's, 8 for star."""
    stores: Annotated[int | None, Within(0, 64)] = None
    """Storage nodes; default: the topology's, 2 for star; 0: nodes lend one another their memory."""
    leaves: Annotated[int | None, Within(1, 32)] = None
    """Leaf switches of leafspine and tree."""
    spines: Annotated[int | None, Within(1, 32)] = None
    """Spine switches of leafspine."""
    pods: Annotated[int | None, Within(2, 8)] = None
    """Pods of fattree."""
    placement: Annotated[str, OneOf(PLACEMENTS)] = AUTO
    """Which of several switches keep a block."""
    push: bool = False
    """1: prefixes that nodes keep asking for are multicast to them unasked."""
    joining: Annotated[int, Within(0, 255)] = 0
    """So many nodes get requests only when half of these have come; with PUSH=1 the switch pushes to
    them what was asked for most."""
    scheduler: Annotated[str, OneOf(SCHEDULERS)] = "random"
    """Which node serves a request."""
    ttft_slo_s: Annotated[float | None, Within(0.001, 1e6), Variable("TTFT_SLO")] = None
    """Real seconds to the first token: what LEVEL=adaptive aims at; with SCHEDULER=conductor a request
    whose first token is expected later is refused; the table says how many met it."""
    tiers: Annotated[str, OneOf(RULES)] = DEFAULT_RULE
    """How blocks move between GPU memory and DRAM."""
    gate: bool = True
    """No: nodes fetch without comparing that with computing under the load."""
    hints: Annotated[str, OneOf(HINTS)] = ANSWERS
    """What the gate knows of homes: their last answers; what they hold and have promised, asked first;
    that, and what the switch's pool holds."""
    fetch: bool = True
    """No: nodes use what they hold themselves, and compute the rest."""
    policy: Annotated[str, OneOf(POLICY_NAMES)] = "reuse"
    """Policy of the pool."""
    eviction_choice: Annotated[str | None, OneOf(EVICTION_MODES), Variable("EVICTION")] = None
    """Which evicted blocks the switch sends to a home without them; default: value, with STORES=0
    drop."""
    fill: Annotated[str, OneOf(FILL_MODES)] = ON_THE_WAY
    """When an admitted block is stored: when it next passes, or fetched now, or now if its home is
    idle."""
    expect: bool = True
    """No: nodes do not tell the controller of blocks that they begin to compute, so that none is in the
    pool when it is stored."""
    pool_blocks: Annotated[int, Within(1, MAX_POOL_BLOCKS)] = 2048
    """Blocks that the switch's pool holds, as the model keeps them."""
    gpu_blocks: Annotated[int, Within(1, 1_000_000)] = 64
    """Blocks of GPU memory a node."""
    dram_blocks: Annotated[int, Within(1, 1_000_000)] = 128
    """Blocks of DRAM a node."""
    store_blocks: Annotated[int, Within(1, 10_000_000)] = 50_000
    """Blocks of DRAM a storage node, the rest on SSD."""
    replicas: Annotated[int, Within(1, 3)] = 1
    """Storage nodes that keep each block."""
    durable: bool = False
    """1: a block counts as stored when it is on its homes' disks."""
    tenants: Annotated[int, Within(0, 64)] = 0
    """That the nodes belong to in turn, each with a secret and an equal share of the pool, and nothing
    in the stores at the start; 0: all use the public namespace."""
    read_ahead: Annotated[int, Within(0, 1024)] = 0
    """Blocks of a chain that storage nodes read ahead from SSD."""
    ssd_gbyte_s: Annotated[float, Within(0.001, 1e5), Variable("SSD_GBYTE")] = 12.0
    """Real rate of a storage node's SSDs, GB/s."""
    sigma: Annotated[Annotated[float, Within(1, 1e9)] | Literal["auto"], Variable("SCALE")] = "auto"
    """Bytes and link rates are divided by it; auto: by what this machine can carry."""
    model_name: Annotated[str, AfterValidator(_preset_or_folder), Variable("MODEL")] = DEFAULT_MODEL
    """Model whose KV is stored: a preset, or a Hugging Face folder, whose real KV the blocks then hold, at
    the times of llama3-70b."""
    gpu: Annotated[str, OneOf(GPUS)] = "h800"
    """GPUs of a node."""
    codec: Annotated[str, OneOf((NONE, *codecs()))] = NONE
    """How blocks are coded before they are sent."""
    level: Annotated[int, Within(0, 99)] | Literal["adaptive"] | None = None
    """Level of the codec; default: that which docs/blocks.md has as default; adaptive: one for each chunk of
    a chain, chosen so that the first token comes within TTFT_SLO."""
    coder: Annotated[str, OneOf(CODERS)] = CPU
    """How long coding takes: as measured on a CPU, as published for a GPU, or no time."""
    blend: bool = False
    """Yes: chunks that are no prefixes are fetched and blended (CacheBlend)."""
    blend_share: Annotated[float, Within(0, 1)] = DEFAULT_SHARE
    """Of the chunks' tokens, that is recomputed."""
    link_gbit_s: Annotated[float, Within(0.001, 100_000), Variable("LINK_GBIT")] = 200.0
    """Real rate of a host's link, Gbit/s."""
    store_gbit_s: Annotated[
        tuple[Annotated[float, Within(0.001, 100_000)], ...] | None, Each(), Variable("STORE_GBIT")
    ] = None
    """The same of each storage node, by commas, where they differ: 200,25."""
    requests_first: bool = False
    """Yes: requests and acknowledgements have a queue of their own at each port, before blocks."""
    secure: bool = False
    """1: P4Runtime over TLS, with certificates on both sides."""
    live: bool = False
    """Show links, tiers, pool and decisions in a terminal while it runs."""
    modes: tuple[Annotated[str, OneOf(MODES)], ...] = COMPARED
    """What is compared."""
    runs: Annotated[int, Within(1, 50)] = 1
    """How often each is played, in turn; above 1 the table has intervals."""
    metrics: Annotated[int, Within(0, 65535)] = 0
    """Port on 127.0.0.1 where Prometheus finds metrics of all processes."""
    traces: bool = False
    """1: each request's way as spans, OTLP/JSON and for Perfetto."""
    pcap: tuple[str, ...] = ()
    """Hosts and switches whose traffic is kept as pcapng, such as node3,s1."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Of generator, scheduler and policy."""
    results: Path = Path("results/run")
    """Folder for the results."""

    @property
    def scale(self) -> float | None:
        """Sigma; None where the machine chooses."""
        return None if isinstance(self.sigma, str) else self.sigma

    @property
    def model_choice(self) -> ModelChoice:
        """The preset, and the folder of a model whose KV is real."""
        if self.model_name in MODELS:
            return ModelChoice(self.model_name)
        return ModelChoice(DEFAULT_MODEL, Path(self.model_name))

    @property
    def model(self) -> str:
        """Preset of the cost model, and part of the keys' parameters."""
        return self.model_choice.preset

    @property
    def lends(self) -> bool:
        """Whether nodes lend one another their memory, as there are no storage nodes."""
        return self.stores == 0

    @property
    def eviction(self) -> str:
        """Which evicted blocks the switch sends to a home; nodes that lend take none."""
        return self.eviction_choice or ("drop" if self.lends else "value")


def parse_options(arguments: Sequence[str], program: str, description: str) -> RunOptions:
    """Return what `make run` is told; raises OptionError."""
    return read(RunOptions, arguments, program, description)
