"""Checks that refuse impossible scenarios, with the reason, before anything runs."""

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
"""Fields that give the shape of a model that is no preset."""


def check(scenario: Scenario, document: Document | None = None) -> None:
    """Raise ScenarioError for the first impossibility; with a document, the error names the line."""
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
    """Return the fabric of a scenario.

    A pool that is read directly has no storage nodes; one stands in, as a fabric needs it.
    """
    network = scenario.network
    asked = {"leaves": network.leaves, "spines": network.spines, "pods": network.pods}
    given = {name: size for name, size in asked.items() if size is not None}
    stores = scenario.storage.count if scenario.storage.kind == "stores" else int(not scenario.lends)
    rate_bit_s = network.link_gbit_s * 1e9
    return make_topology(network.topology, rate_bit_s, scenario.nodes.count, stores, **given)


def impossibilities(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yield key and reason of everything that is impossible, apart from the shape of the fabric."""
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
    """Yield an error if a model's own shape is given only in part."""
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
    """Return the scenario with all memory in GB instead of blocks, plus half a block against rounding."""
    try:
        block_gb = cost_model(scenario, scenario.model.block_tokens or MOONCAKE.block_tokens).block_bytes / GB
    except CompressionError:  # `check` reports it
        return scenario
    nodes, storage, pool = scenario.nodes, scenario.storage, scenario.pool
    return scenario.changed(
        nodes=_in_gb({"gpu": nodes.gpu_blocks, "dram": nodes.dram_blocks}, block_gb),
        storage=_in_gb({"dram": storage.dram_blocks}, block_gb),
        pool={} if pool.blocks is None else {"size_gb": (pool.blocks + 0.5) * block_gb, "blocks": None},
    )


def _in_gb(blocks: dict[str, int | None], block_gb: float) -> dict[str, float | None]:
    """Return the keys in GB for the memories that are given in blocks, and None for their keys in blocks."""
    given = {name: count for name, count in blocks.items() if count is not None}
    in_gb = {f"{name}_gb": (count + 0.5) * block_gb for name, count in given.items()}
    return {**in_gb, **dict.fromkeys(f"{name}_blocks" for name in given)}


def decode_s(scenario: Scenario, cost: CostModel) -> float:
    """Return the seconds to decode a block from its codec; 0 with a ladder, whose levels have their own."""
    coded = _coded(scenario, cost)
    return 0.0 if isinstance(coded, Ladder) else _decode_s(scenario, cost, coded)


def ladder(scenario: Scenario, cost: CostModel) -> Ladder | None:
    """Return the levels that a stream chooses from, or None if blocks have a single level."""
    coded = _coded(scenario, cost)
    return coded if isinstance(coded, Ladder) else None


def rungs(scenario: Scenario, cost: CostModel, value_bytes: float) -> list[Rung]:
    """Return the levels for the streamer; `value_bytes` are the bytes of a fragment on the wire."""
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
    """Return the sizes of blocks with the model's codec; raises CompressionError if it can't be used."""
    model = scenario.model
    return make_sizes(model.codec, model.level, scenario.network.fragments, cost.model.kv_dtype_bytes)


def _model_spec(model: Model) -> ModelSpec:
    shape = [getattr(model, name) for name in SHAPE]
    if None in shape:
        return MODELS[model.name]
    layers, hidden, values, dtype_bytes, weights = shape
    return ModelSpec("scenario", layers, hidden, values, dtype_bytes, weights, "the scenario")


def sizes(scenario: Scenario, cost: CostModel) -> Sizes:
    """Return how blocks are cut and their sizes on the wire.

    With a ladder, sizes are those of a plain block, and a level has some of its fragments.
    """
    network = scenario.network
    block_bytes = cost.block_bytes if scenario.model.level == ADAPTIVE else cost.stored_bytes
    return Sizes(
        block_bytes, network.fragments, network.segments, network.header_share, network.request_share
    )


def pool_size(scenario: Scenario, cost: CostModel, cut: Sizes) -> PoolSize:
    """Return the numbers of entries and slots of one switch's pool; a slot holds a part of a block."""
    blocks, levels = pool_blocks(scenario, cost), ladder(scenario, cost)
    if levels is None:
        return PoolSize(blocks, blocks * len(cut.parts), len(cut.parts))
    slots = int(scenario.pool.size_gb * GB / cost.block_bytes * cut.fragments)
    return PoolSize(blocks, slots, levels.most_fragments, int(SPARE_SHARE * slots))


def pool_blocks(scenario: Scenario, cost: CostModel) -> int:
    """Return how many blocks of mean size the pool of one switch holds; 0 without a pool."""
    pool = scenario.pool
    if pool.memory == "none" or not scenario.switched or scenario.nodes.gate == "never":
        return 0
    return min(pool.index_entries, int(pool.size_gb * GB / cost.stored_bytes))


def spare_blocks(scenario: Scenario, blocks: int) -> int:
    """Return how many blocks of a pool a policy may not count on, because they are being reclaimed."""
    return Thresholds(eviction=scenario.control.eviction).spare_blocks(blocks)
