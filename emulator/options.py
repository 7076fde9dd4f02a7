"""The demo's options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from commands.options import (
    LIVE_HELP,
    METRICS,
    Option,
    OptionError,
    each_of,
    list_of,
    number,
    one_of,
    parse_into,
    whole,
    yes_or_no,
)
from commands.trace_options import TRACE_OPTIONS, TraceOptions
from controller.config import AUTO, EVICTION_MODES, FILL_MODES, ON_THE_WAY, PLACEMENTS
from controller.policies import POLICY_NAMES
from emulator.modes import COMPARED, MODES
from hostlib.model.gate import ANSWERS, HINTS
from hostlib.model.tier_rules import DEFAULT_RULE, RULES
from topologies.engines import ENGINES
from topologies.registry import TOPOLOGIES
from workload.blend import DEFAULT_SHARE
from workload.compression import CODERS, CPU, NONE, CompressionError, codecs
from workload.cost import DEFAULT_MODEL, GPUS, MODELS
from workload.fan_in import ShapeError
from workload.generate import DEFAULT_SHAPE
from workload.levels import ADAPTIVE, parse_level
from workload.schedule import SCHEDULERS
from workload.shapes import PLAYED_SHAPES, played_shape

MAX_POOL_BLOCKS = 65536
"""Entries that a pool index is made for."""


class ModelChoice(NamedTuple):
    """MODEL: a preset, or a folder with a model whose KV is real while times are a preset's."""

    preset: str
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(TraceOptions):
    """What one `make run` plays, and on what."""

    engine: str
    topology: str
    shape: str
    requests: int | None
    start_s: float | None
    speed: float | None
    hosts: int | None
    stores: int | None
    leaves: int | None
    spines: int | None
    pods: int | None
    placement: str
    push: bool
    joining: int
    """Nodes, the last, that join when half of the requests have come."""
    scheduler: str
    ttft_slo_s: float | None
    tiers: str
    gate: bool
    hints: str
    fetch: bool
    policy: str
    eviction_choice: str | None
    """None: what goes with the fabric."""
    fill: str
    expect: bool
    """Whether nodes tell the controller of blocks that they begin to compute."""
    pool_blocks: int
    gpu_blocks: int
    dram_blocks: int
    store_blocks: int
    replicas: int
    durable: bool
    tenants: int
    read_ahead: int
    ssd_gbyte_s: float
    scale: float | None
    """None: chosen by what the machine can carry."""
    model_choice: ModelChoice
    gpu: str
    codec: str
    """By which blocks are coded before they are sent; "none": they travel as they are."""
    level: int | str | None
    """Of the codec; None: its default; "adaptive": one for each chunk of a chain."""
    coder: str
    """What codes them, and so how long that takes."""
    blend: bool
    blend_share: float
    link_gbit_s: float
    store_gbit_s: tuple[float, ...] | None
    """Of each storage node, where links differ."""
    requests_first: bool
    """Whether packets without a value have a queue of their own at each port."""
    secure: bool
    live: bool
    modes: tuple[str, ...]
    runs: int
    metrics: int
    """Port of the exporter; 0 for none."""
    traces: bool
    pcap: tuple[str, ...]
    """Hosts and switches whose traffic is captured."""
    seed: int
    results: Path

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


def _model(text: str) -> ModelChoice:
    if text in MODELS:
        return ModelChoice(text)
    folder = Path(text)
    if (folder / "config.json").is_file():
        return ModelChoice(DEFAULT_MODEL, folder)
    raise OptionError(
        f"there is no {text!r}: choose one of {', '.join(MODELS)}, or a folder with a model's config.json"
    )


def _level(text: str) -> int | str:
    try:
        return parse_level(text)
    except CompressionError as error:
        raise OptionError(str(error)) from None


def _shape(text: str) -> str:
    try:
        return played_shape(text)
    except ShapeError as error:
        raise OptionError(str(error)) from None


Extended = TypeVar("Extended", bound=RunOptions)


def _scale(text: str) -> float | None:
    if text == "auto":
        return None
    try:
        return number(1, 1e9)(text)
    except OptionError as error:
        raise OptionError(f"{error}; or auto") from None


# In the order of RunOptions' fields.
_OPTIONS = (
    *TRACE_OPTIONS,
    Option("ENGINE", one_of(tuple(ENGINES)), "embedded", "switch engine"),
    Option("TOPO", one_of(tuple(TOPOLOGIES)), "star", "topology"),
    Option(
        "SHAPE",
        _shape,
        DEFAULT_SHAPE,
        f"shape of the generated trace: {', '.join(PLAYED_SHAPES)}; or such as swarm:sub_agents=64",
    ),
    Option("REQUESTS", whole(1, 1_000_000), None, "requests to play; default: 240 generated, 600 of a TRACE"),
    Option("START", number(0, 1e9), None, "second to begin at; what came before is in the stores"),
    Option(
        "SPEED",
        number(0.01, 1000),
        None,
        "trace seconds a second; default: plays in 32 s",
    ),
    Option("HOSTS", whole(1, 256), None, "inference nodes; default: the topology's, 8 for star"),
    Option(
        "STORES",
        whole(0, 64),
        None,
        "storage nodes; default: the topology's, 2 for star; 0: nodes lend one another their memory",
    ),
    Option("LEAVES", whole(1, 32), None, "leaf switches of leafspine and tree"),
    Option("SPINES", whole(1, 32), None, "spine switches of leafspine"),
    Option("PODS", whole(2, 8), None, "pods of fattree"),
    Option("PLACEMENT", one_of(PLACEMENTS), AUTO, "which of several switches keep a block"),
    Option("PUSH", yes_or_no, False, "1: prefixes that nodes keep asking for are multicast to them unasked"),
    Option(
        "JOINING",
        whole(0, 255),
        0,
        "so many nodes get requests only when half of these have come; with PUSH=1 the switch pushes to them "
        "what was asked for most",
    ),
    Option("SCHEDULER", one_of(SCHEDULERS), "random", "which node serves a request"),
    Option(
        "TTFT_SLO",
        number(0.001, 1e6),
        None,
        "real seconds to the first token: what LEVEL=adaptive aims at; with SCHEDULER=conductor a request "
        "whose first token is expected later is refused; the table says how many met it",
    ),
    Option("TIERS", one_of(tuple(RULES)), DEFAULT_RULE, "how blocks move between GPU memory and DRAM"),
    Option("GATE", yes_or_no, True, "no: nodes fetch without comparing that with computing under the load"),
    Option(
        "HINTS",
        one_of(HINTS),
        ANSWERS,
        "what the gate knows of homes: their last answers; what they hold and have promised, asked first; "
        "that, and what the switch's pool holds",
    ),
    Option("FETCH", yes_or_no, True, "no: nodes use what they hold themselves, and compute the rest"),
    Option("POLICY", one_of(tuple(POLICY_NAMES)), "reuse", "policy of the pool"),
    Option(
        "EVICTION",
        one_of(EVICTION_MODES),
        None,
        "which evicted blocks the switch sends to a home without them; default: value, with STORES=0 drop",
    ),
    Option(
        "FILL",
        one_of(FILL_MODES),
        ON_THE_WAY,
        "when an admitted block is stored: when it next passes, or fetched now, or now if its home is idle",
    ),
    Option(
        "EXPECT",
        yes_or_no,
        True,
        "no: nodes do not tell the controller of blocks that they begin to compute, so that none is in the "
        "pool when it is stored",
    ),
    Option(
        "POOL_BLOCKS",
        whole(1, MAX_POOL_BLOCKS),
        2048,
        "blocks that the switch's pool holds, as the model keeps them",
    ),
    Option("GPU_BLOCKS", whole(1, 1_000_000), 64, "blocks of GPU memory a node"),
    Option("DRAM_BLOCKS", whole(1, 1_000_000), 128, "blocks of DRAM a node"),
    Option("STORE_BLOCKS", whole(1, 10_000_000), 50_000, "blocks of DRAM a storage node, the rest on SSD"),
    Option("REPLICAS", whole(1, 3), 1, "storage nodes that keep each block"),
    Option("DURABLE", yes_or_no, False, "1: a block counts as stored when it is on its homes' disks"),
    Option(
        "TENANTS",
        whole(0, 64),
        0,
        "that the nodes belong to in turn, each with a secret and an equal share of the pool, and nothing "
        "in the stores at the start; 0: all use the public namespace",
    ),
    Option("READ_AHEAD", whole(0, 1024), 0, "blocks of a chain that storage nodes read ahead from SSD"),
    Option("SSD_GBYTE", number(0.001, 1e5), 12.0, "real rate of a storage node's SSDs, GB/s"),
    Option(
        "SCALE",
        _scale,
        None,
        "sigma: bytes and link rates are divided by it; auto (the default): what this machine can carry",
    ),
    Option(
        "MODEL",
        _model,
        ModelChoice(DEFAULT_MODEL),
        f"model whose KV is stored: {', '.join(MODELS)}; or a Hugging Face folder, whose real KV the blocks "
        f"then hold, at the times of {DEFAULT_MODEL}",
    ),
    Option("GPU", one_of(tuple(GPUS)), "h800", "GPUs of a node"),
    Option(
        "CODEC",
        one_of((NONE, *codecs())),
        NONE,
        f"how blocks are coded before they are sent: {', '.join((NONE, *codecs()))}",
    ),
    Option(
        "LEVEL",
        _level,
        None,
        f"of the codec; default: that which docs/blocks.md has as default; {ADAPTIVE}: one for each chunk of "
        "a chain, chosen so that the first token comes within TTFT_SLO",
    ),
    Option(
        "CODER",
        one_of(tuple(CODERS)),
        CPU,
        "how long coding takes: " + "; ".join(f"{name}: {what}" for name, what in CODERS.items()),
    ),
    Option(
        "BLEND", yes_or_no, False, "yes: chunks that are no prefixes are fetched and blended (CacheBlend)"
    ),
    Option("BLEND_SHARE", number(0, 1), DEFAULT_SHARE, "of the chunks' tokens, that is recomputed"),
    Option("LINK_GBIT", number(0.001, 100_000), 200.0, "real rate of a host's link, Gbit/s"),
    Option(
        "STORE_GBIT",
        each_of(number(0.001, 100_000)),
        None,
        "the same of each storage node, by commas, where they differ: 200,25",
    ),
    Option(
        "REQUESTS_FIRST",
        yes_or_no,
        False,
        "yes: requests and acknowledgements have a queue of their own at each port, before blocks",
    ),
    Option("SECURE", yes_or_no, False, "1: P4Runtime over TLS, with certificates on both sides"),
    Option("LIVE", yes_or_no, False, LIVE_HELP),
    Option("MODES", list_of(one_of(tuple(MODES))), COMPARED, f"what is compared, of {', '.join(MODES)}"),
    Option("RUNS", whole(1, 50), 1, "how often each is played, in turn; above 1 the table has intervals"),
    METRICS,
    Option("TRACES", yes_or_no, False, "1: each request's way as spans, OTLP/JSON and for Perfetto"),
    Option("PCAP", list_of(str), (), "hosts and switches whose traffic is kept as pcapng, such as node3,s1"),
    Option("SEED", whole(0, 2**31), 1, "of generator, scheduler and policy"),
)


def parse_options(
    arguments: Sequence[str], program: str, description: str, results: Path = Path("results/run")
) -> RunOptions:
    """Options from the command line and the environment; raises OptionError."""
    return parse_extended(RunOptions, (), arguments, program, description, results)


def parse_extended(
    kind: type[Extended],
    more: Sequence[Option],
    arguments: Sequence[str],
    program: str,
    description: str,
    results: Path,
) -> Extended:
    """The same for a command with options of its own: the fields that `kind` adds, in the order of `more`."""
    options = (*_OPTIONS, Option("RESULTS", Path, results, "folder for the results"), *more)
    return parse_into(kind, options, arguments, program, description)
