"""Scenarios that cannot be: refused with the reason before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from commands.toml_file import Document, ScenarioError
from controller.config import PoolSize, Thresholds
from emulator.scenario import SPARE_SHARE
from hostlib.model.streamer import Rung
from scenario import GB, Scenario
from scenario.rules import ALWAYS, SIMULATED, refusals, value_of
from scenario.tables import Model
from simulator.messages import Sizes
from topologies.errors import TopologyError
from topologies.fabric import Fabric
from topologies.registry import make_topology
from workload.compression import BlockSizes, CompressionError, coding_s
from workload.cost import ATTENTION_SHARES, GPUS, MODELS, CostModel, ModelSpec
from workload.levels import ADAPTIVE, Ladder, make_sizes
from workload.trace import MOONCAKE

SHAPE = ("layers", "hidden", "kv_values_per_layer", "kv_dtype_bytes", "weights")
"""Fields of a model that is no preset."""


def check(scenario: Scenario, document: Document | None = None) -> None:
    """Raise ScenarioError for the first impossibility; with a document it names the line."""
    for path, reason in impossibilities(scenario):
        if document is not None:
            raise document.error(path, reason)
        raise ScenarioError(f"{path}: {reason}")
    try:
        make_fabric(scenario)
    except TopologyError as error:
        if document is not None:
            raise document.error("network.topology", str(error)) from None
        raise ScenarioError(f"network.topology: {error}") from None


def make_fabric(scenario: Scenario) -> Fabric:
    """Return the fabric of a scenario; of pools that are read directly, one storage node stands for none."""
    network = scenario.network
    asked = {"leaves": network.leaves, "spines": network.spines, "pods": network.pods}
    given = {name: size for name, size in asked.items() if size is not None}
    stores = scenario.storage.count if scenario.storage.kind == "stores" else int(not scenario.lends)
    rate_bit_s = network.link_gbit_s * 1e9
    return make_topology(network.topology, rate_bit_s, scenario.nodes.count, stores, **given)


def impossibilities(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Field and reason of everything that can't be, apart from the shape of the fabric."""
    yield from refusals(scenario, (*SIMULATED, *ALWAYS))
    yield from _half_models(scenario)
    tokens = scenario.model.block_tokens or MOONCAKE.block_tokens
    try:
        block_bytes = cost_model(scenario, tokens).block_bytes
    except CompressionError as error:
        yield "model.codec", str(error)
        return
    block = f"a block of {tokens} tokens has {block_bytes / 1e6:,.1f} MB"
    pooled = scenario.switched and scenario.pool.memory != "none"
    holds = {
        "storage.dram_gb": (scenario.storage.kind == "stores", "the DRAM of a storage node"),
        "pool.size_gb": (pooled, "the pool"),
        "direct.size_gb": (scenario.storage.kind == "direct", "the pool"),
        "nodes.gpu_gb": (True, "the GPU memory for blocks"),
    }
    for name, (needed, what) in holds.items():
        if needed and value_of(scenario, name) * GB < block_bytes:
            yield name, f"{block}: {what} does not hold one. Use more memory or smaller blocks"


def _half_models(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """A model's own shape is given in full or not at all."""
    missing = [name for name in SHAPE if getattr(scenario.model, name) is None]
    if 0 < len(missing) < len(SHAPE):
        yield (
            "model",
            f"a model of its own also needs {', '.join(missing)}; a preset none of {', '.join(SHAPE)}",
        )


def cost_model(scenario: Scenario, block_tokens: int) -> CostModel:
    """Return the cost model of a node."""
    model = scenario.model
    gpu = replace(
        GPUS[model.gpu],
        count=model.gpus,
        prefill_utilisation=model.prefill_utilisation,
        memory_utilisation=model.memory_utilisation,
    )
    spec = replace(_model_spec(model), attention_share=ATTENTION_SHARES[model.attention])
    plain = CostModel(spec, gpu, block_tokens, launch_s=model.launch_ms / 1000)
    if model.coded_share is not None:
        return replace(plain, stored_share=model.coded_share)
    return replace(plain, stored_share=_coded(scenario, plain).stored_share)


def in_gb(scenario: Scenario) -> Scenario:
    """Return the same with all memory in GB; room for a block and a half of a pool of one holds one."""
    try:
        block_gb = cost_model(scenario, scenario.model.block_tokens or MOONCAKE.block_tokens).block_bytes / GB
    except CompressionError:  # said by `check`
        return scenario
    nodes, storage, pool = scenario.nodes, scenario.storage, scenario.pool
    return scenario.changed(
        nodes=_in_gb({"gpu": nodes.gpu_blocks, "dram": nodes.dram_blocks}, block_gb),
        storage=_in_gb({"dram": storage.dram_blocks}, block_gb),
        pool={} if pool.blocks is None else {"size_gb": (pool.blocks + 0.5) * block_gb, "blocks": None},
    )


def _in_gb(blocks: dict[str, int | None], block_gb: float) -> dict[str, float | None]:
    """The keys in GB of memory that is given in blocks, and no longer in blocks."""
    given = {name: count for name, count in blocks.items() if count is not None}
    in_gb = {f"{name}_gb": (count + 0.5) * block_gb for name, count in given.items()}
    return {**in_gb, **dict.fromkeys(f"{name}_blocks" for name in given)}


def decode_s(scenario: Scenario, cost: CostModel) -> float:
    """Return the time to read a block from its codec; of the levels of a stream each has its own."""
    coded = _coded(scenario, cost)
    return 0.0 if isinstance(coded, Ladder) else _decode_s(scenario, cost, coded)


def ladder(scenario: Scenario, cost: CostModel) -> Ladder | None:
    """Return the levels that a stream chooses from; None where blocks have one."""
    coded = _coded(scenario, cost)
    return coded if isinstance(coded, Ladder) else None


def rungs(scenario: Scenario, cost: CostModel, value_bytes: float) -> list[Rung]:
    """Return the levels for the streamer; `value_bytes` of a fragment on the wire."""
    levels = ladder(scenario, cost)
    if levels is None:
        return []
    return [
        Rung(level, one.mean_fragments * value_bytes, _decode_s(scenario, cost, one))
        for (_, level), one in zip(levels.numbers, levels.levels, strict=True)
    ]


def _decode_s(scenario: Scenario, cost: CostModel, coded: BlockSizes) -> float:
    if scenario.model.decode_gbyte_s:
        return cost.block_bytes / (scenario.model.decode_gbyte_s * GB)
    values = cost.block_bytes / cost.model.kv_dtype_bytes
    return coding_s(coded.compression, scenario.model.coder, values)[1]


def _coded(scenario: Scenario, cost: CostModel) -> BlockSizes | Ladder:
    """What the codec makes of blocks; raises CompressionError for one that can't be used."""
    model = scenario.model
    return make_sizes(model.codec, model.level, scenario.network.fragments, cost.model.kv_dtype_bytes)


def _model_spec(model: Model) -> ModelSpec:
    shape = [getattr(model, name) for name in SHAPE]
    if None in shape:
        return MODELS[model.name]
    layers, hidden, values, dtype_bytes, weights = shape
    return ModelSpec("scenario", layers, hidden, values, dtype_bytes, weights, "the scenario")


def sizes(scenario: Scenario, cost: CostModel) -> Sizes:
    """How blocks are cut and what they weigh on the wire. Those of a ladder are some of a plain block's
    fragments."""
    network = scenario.network
    block_bytes = cost.block_bytes if scenario.model.level == ADAPTIVE else cost.stored_bytes
    return Sizes(
        block_bytes, network.fragments, network.segments, network.header_share, network.request_share
    )


def pool_size(scenario: Scenario, cost: CostModel, cut: Sizes) -> PoolSize:
    """Entries and slots of the pool of one switch; a slot holds a part of a block."""
    blocks, levels = pool_blocks(scenario, cost), ladder(scenario, cost)
    if levels is None:
        return PoolSize(blocks, blocks * len(cut.parts), len(cut.parts))
    slots = int(scenario.pool.size_gb * GB / cost.block_bytes * cut.fragments)
    return PoolSize(blocks, slots, levels.most_fragments, int(SPARE_SHARE * slots))


def pool_blocks(scenario: Scenario, cost: CostModel) -> int:
    """Blocks that the pool of one switch holds, of their mean size; 0: there is none."""
    pool = scenario.pool
    if pool.memory == "none" or not scenario.switched or scenario.nodes.gate == "never":
        return 0
    return min(pool.index_entries, int(pool.size_gb * GB / cost.stored_bytes))


def spare_blocks(scenario: Scenario, blocks: int) -> int:
    """Of a pool's blocks those that a policy may not count on, because they are being reclaimed."""
    return Thresholds(eviction=scenario.control.eviction).spare_blocks(blocks)
