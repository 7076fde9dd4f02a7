"""Scenarios that cannot be: refused with the reason before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from controller.config import PoolSize, Thresholds
from emulator.scenario import SPARE_SHARE
from hostlib.model.streamer import Rung
from simulator.machine import Machine
from simulator.messages import Sizes
from simulator.scenario import GB, ROUTERS, SWITCHES, Model, Scenario
from simulator.schema import Document, ScenarioError
from topologies.errors import TopologyError
from topologies.fabric import Fabric
from topologies.registry import make_topology
from workload.compression import NONE, BlockSizes, CompressionError, coding_s
from workload.cost import ATTENTION_SHARES, GPUS, MODELS, CostModel, ModelSpec
from workload.levels import ADAPTIVE, Ladder, make_sizes
from workload.schedule import CONDUCTOR
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
    """The fabric of a scenario; of pools that are read directly, one storage node stands for none."""
    network = scenario.network
    asked = {"leaves": network.leaves, "spines": network.spines, "pods": network.pods}
    given = {name: size for name, size in asked.items() if size is not None}
    stores = scenario.storage.count if scenario.storage.kind == "stores" else int(not scenario.lends)
    rate_bit_s = network.link_gbit_s * 1e9
    return make_topology(network.topology, rate_bit_s, scenario.nodes.count, stores, **given)


def impossibilities(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Field and reason of everything that can't be, apart from the shape of the fabric."""
    yield from _zeros(scenario)
    if scenario.model.level == ADAPTIVE:
        yield from _no_streams(scenario)
    yield from _half_models(scenario)
    try:
        cost_model(scenario, scenario.model.block_tokens or MOONCAKE.block_tokens)
    except CompressionError as error:
        yield "model.codec", str(error)
        return
    tokens = scenario.model.block_tokens or MOONCAKE.block_tokens
    block_bytes = cost_model(scenario, tokens).block_bytes
    block = f"a block of {tokens} tokens has {block_bytes / 1e6:,.1f} MB"
    if scenario.storage.kind == "stores":
        if not scenario.storage.count:
            yield "storage.count", "there is no storage: blocks need at least one storage node"
        if scenario.storage.dram_gb * GB < block_bytes:
            yield "storage.dram_gb", f"{block}: the DRAM of a storage node does not hold one"
    if scenario.switched and scenario.pool.memory != "none":
        yield from _pool_impossibilities(scenario, int(scenario.pool.size_gb * GB / block_bytes), block)
    if scenario.direct.front == SWITCHES:
        yield from _lending_impossibilities(scenario)
    if scenario.storage.kind == "direct" and scenario.direct.size_gb * GB < block_bytes:
        yield "direct.size_gb", f"{block}: the pool does not hold one"
    if scenario.nodes.gpu_gb * GB < block_bytes:
        yield "nodes.gpu_gb", f"{block}: the GPU memory for blocks does not hold one"
    if scenario.network.segments >= scenario.network.fragments > 1:
        yield "network.segments", f"must be fewer than the {scenario.network.fragments} fragments of a block"
    if scenario.nodes.blend:
        yield from _blend_impossibilities(scenario)
    if scenario.nodes.joining or scenario.nodes.warm == "pool":
        yield from _joining_impossibilities(scenario)
    if scenario.control.push:
        yield from _push_impossibilities(scenario)
    if scenario.machine != Machine():
        yield from _beside_the_machine(scenario)
    if scenario.workload.clients and scenario.workload.load != 1.0:
        yield "workload.load", "a closed loop has no rate of arrival: leave out load or clients"


def _blend_impossibilities(scenario: Scenario) -> Iterator[tuple[str, str]]:
    nodes = scenario.nodes
    if nodes.gate == "never":
        yield "nodes.blend", 'blends what is fetched: nodes.gate must be "always" or "compare"'
    if nodes.decode != "apart" or nodes.loading != "overlapped":
        yield "nodes.blend", 'needs nodes.decode = "apart" and nodes.loading = "overlapped"'


def _beside_the_machine(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """What the layer of the emulator's machine has no process for: it would take no time there."""
    if not scenario.switched:
        yield "machine", "has processes for storage nodes, and for nodes that lend past switches, only"
    if scenario.nodes.decode in ("steps", "budget"):
        yield "machine", 'has processes for nodes with decode = "apart" and "batched" only'
    if scenario.decoders.count:
        yield "machine", "has no processes for nodes that decode: use decoders.count = 0"


def _no_streams(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """What does not go with levels that are chosen for each chunk."""
    if not scenario.workload.ttft_slo_s:
        yield "workload.ttft_slo_s", f'level = "{ADAPTIVE}" aims at a time to the first token: say which'
    if scenario.workload.scheduler == CONDUCTOR:
        yield (
            "workload.scheduler",
            f'the conductor does not find blocks at the levels of level = "{ADAPTIVE}"',
        )
    if scenario.storage.kind != "stores":
        yield "storage.kind", f'level = "{ADAPTIVE}" goes with storage nodes: kind = "stores"'
    if scenario.model.decoding == "gpu":
        yield "model.decoding", f'level = "{ADAPTIVE}" has decoders beside the GPU: use beside or smartnic'
    if scenario.nodes.blend:
        yield (
            "nodes.blend",
            f'level = "{ADAPTIVE}" streams chains: chunks that are no prefixes have one level',
        )
    if scenario.nodes.loading != "overlapped" or scenario.nodes.gate == "never":
        yield (
            "nodes",
            f'level = "{ADAPTIVE}" goes with loading = "overlapped", and a gate that is not "never"',
        )


def _pool_impossibilities(scenario: Scenario, blocks: int, block: str) -> Iterator[tuple[str, str]]:
    if not blocks:
        yield "pool.size_gb", f"{block}: the pool does not hold one. Use a larger pool or smaller blocks"


def _joining_impossibilities(scenario: Scenario) -> Iterator[tuple[str, str]]:
    nodes, scheduler = scenario.nodes, scenario.workload.scheduler
    if nodes.joining >= nodes.count:
        yield "nodes.joining", f"somebody has to be there first: at most {nodes.count - 1} of {nodes.count}"
    if nodes.joining and scheduler in (CONDUCTOR, *ROUTERS):
        yield "workload.scheduler", f"{scheduler} knows of no node that joins later: use another"
    if nodes.warm == "pool" and not (nodes.joining and scenario.switched and scenario.pool.memory != "none"):
        yield "nodes.warm", "pushes what the switches' pools hold by now to nodes that join: needs both"


def _push_impossibilities(scenario: Scenario) -> Iterator[tuple[str, str]]:
    if scenario.storage.kind != "stores" or scenario.pool.memory == "none" or scenario.nodes.gate == "never":
        yield "control.push", "pushes blocks of the switches' pools to nodes that ask storage nodes for them"
    if scenario.model.codec != NONE or scenario.model.coded_share is not None:
        yield "control.push", "nodes keep what is pushed as it comes, undecoded: leave out the codec"


def _lending_impossibilities(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """What does not go with nodes that answer one another's GETs."""
    if scenario.storage.kind != "peers":
        yield "direct.front", f'"{SWITCHES}" stand before nodes that lend their memory: kind = "peers"'
    if scenario.workload.scheduler in (CONDUCTOR, *ROUTERS):
        name = scenario.workload.scheduler
        yield "workload.scheduler", f'{name} does not look through front = "{SWITCHES}": use another'
    if scenario.control.eviction != "drop":
        yield "control.eviction", "nodes keep nothing for others, so nothing can be reclaimed: use drop"


def _half_models(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """A model's own shape is given in full or not at all."""
    missing = [name for name in SHAPE if getattr(scenario.model, name) is None]
    if 0 < len(missing) < len(SHAPE):
        yield (
            "model",
            f"a model of its own also needs {', '.join(missing)}; a preset none of {', '.join(SHAPE)}",
        )


def _zeros(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Rates of zero, where they matter."""
    rates = [("network.link_gbit_s", scenario.network.link_gbit_s)]
    if scenario.storage.kind == "stores" and scenario.storage.ssd_gb:
        rates.append(("storage.ssd_gbyte_s", scenario.storage.ssd_gbyte_s))
    if scenario.switched and scenario.pool.memory == "dram":
        rates.append(("pool.memory_gbyte_s", scenario.pool.memory_gbyte_s))
    if scenario.pool.memory != "none":
        rates.append(("control.writes_per_s", scenario.control.writes_per_s))
    if scenario.storage.kind == "direct":
        names = ("device_gbyte_s", "read_gbyte_s", "write_gbyte_s")
        rates += [(f"direct.{name}", getattr(scenario.direct, name)) for name in names]
    for path, rate in rates:
        if rate <= 0:
            yield path, "must be above 0: nothing would ever arrive"
    if scenario.model.coded_share is not None and scenario.model.codec != NONE:
        yield "model.coded_share", "a codec has the sizes that were measured: leave out one of the two"
    if scenario.workload.scheduler in ROUTERS and scenario.nodes.decode == "steps":
        name = scenario.workload.scheduler
        yield "workload.scheduler", f'{name} does not know what nodes with decode = "steps" have to do'
    if scenario.nodes.decode == "budget" and scenario.nodes.gate != "never":
        yield "nodes.gate", 'nodes with decode = "budget" fetch nothing: use gate = "never"'
    if scenario.decoders.count and scenario.nodes.decode != "apart":
        yield "decoders.count", 'nodes with decode = "batched" decode themselves: leave out one of the two'
    if scenario.decoders.count and scenario.decoders.running_gb <= 0:
        yield "decoders.running_gb", "must be above 0: no request would ever start"
    if scenario.model.decoding == "gpu" and scenario.nodes.decode != "batched":
        yield "model.decoding", 'tokens that the GPU can hold up are in decode = "batched" only'
    if 0.0 < scenario.model.decoding_slowdown < 1.0:
        yield "model.decoding_slowdown", "nothing is faster beside something else: use at least 1, or 0"
    if scenario.nodes.decode == "steps" and scenario.nodes.loading != "blocking":
        yield "nodes.loading", 'with decode = "steps" loads are part of a step: use "blocking"'
    if scenario.nodes.decode in ("batched", "steps") and scenario.nodes.running_gb <= 0:
        yield "nodes.running_gb", "must be above 0: no request would ever start"


def cost_model(scenario: Scenario, block_tokens: int) -> CostModel:
    """The cost model of a node."""
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


def decode_s(scenario: Scenario, cost: CostModel) -> float:
    """Time to read a block from its codec; of the levels of a stream each has its own."""
    coded = _coded(scenario, cost)
    return 0.0 if isinstance(coded, Ladder) else _decode_s(scenario, cost, coded)


def ladder(scenario: Scenario, cost: CostModel) -> Ladder | None:
    """The levels that a stream chooses from; None where blocks have one."""
    coded = _coded(scenario, cost)
    return coded if isinstance(coded, Ladder) else None


def rungs(scenario: Scenario, cost: CostModel, value_bytes: float) -> list[Rung]:
    """The same for the streamer; `value_bytes` of a fragment on the wire."""
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
