"""Rules that refuse combinations of a scenario's keys, in one table for the emulator and the simulator.

A rule names the key that is at fault, when it is broken, and why. Errors that depend on the sizes of blocks
and fabrics are found where these are made (`simulator.checks`, `topologies`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from commands.declarations import Key, keys_of
from commands.errors import OptionError
from commands.options import shown
from controller.config import AUTO, EVERYWHERE
from hostlib.model.gate import ANSWERS, HOMES
from scenario.machine import Machine
from scenario.tables import ROUTERS, SWITCHES
from scenario.whole import Scenario
from workload.compression import NONE
from workload.cost import MODELS
from workload.levels import ADAPTIVE
from workload.schedule import CONDUCTOR


@dataclass(frozen=True, slots=True)
class Rule:
    """Combination of keys that is refused."""

    key: str
    """Key that is at fault, as in a TOML file."""
    broken: Callable[[Scenario], bool]
    because: str


def refusals(scenario: Scenario, rules: Iterable[Rule]) -> Iterator[tuple[str, str]]:
    """Yield key and reason of each rule that a scenario breaks."""
    return ((rule.key, rule.because) for rule in rules if rule.broken(scenario))


def check_played(scenario: Scenario) -> None:
    """Raise OptionError for the first thing that the emulator can't do; it names the variable."""
    keys = {key.name: key for key in keys_of(Scenario)}
    for name, because in refusals(scenario, (*ALWAYS, *PLAYED)):
        raise OptionError(f"{_label(keys.get(name), scenario, name)}: {because}")


def _label(key: Key | None, scenario: Scenario, name: str) -> str:
    if key is None or not key.own_variable:
        return name
    return f"{key.variable}={shown(value_of(scenario, name))}"


def value_of(scenario: Scenario, name: str) -> Any:
    """Return the value of a key, or a table."""
    value: Any = scenario
    for part in name.split("."):
        value = getattr(value, part)
    return value


_DEFAULTS: Final = Scenario()


def _differs_from_default(name: str, scenario: Scenario) -> bool:
    return bool(value_of(scenario, name) != value_of(_DEFAULTS, name))


def only_default(name: str, because: str) -> Rule:
    """Return the rule that a key, or a table, must have its default."""
    return Rule(name, partial(_differs_from_default, name), because)


def _adaptive(scenario: Scenario) -> bool:
    return scenario.model.level == ADAPTIVE


def _conducted(scenario: Scenario) -> bool:
    return scenario.workload.scheduler == CONDUCTOR


def _own_model(scenario: Scenario) -> bool:
    """Return whether the model is a folder whose KV is real."""
    return scenario.model.name not in MODELS


def _never(scenario: Scenario) -> bool:
    return scenario.nodes.gate == "never"


ALWAYS: Final = (
    Rule(
        "model.level",
        lambda s: _adaptive(s) and not s.workload.ttft_slo_s,
        "aims at a time to the first token: say which (TTFT_SLO, workload.ttft_slo_s)",
    ),
    Rule(
        "workload.scheduler",
        lambda s: _adaptive(s) and _conducted(s),
        f'the conductor does not find blocks at the levels of level = "{ADAPTIVE}"',
    ),
    Rule(
        "nodes.gate",
        lambda s: _adaptive(s) and _never(s),
        "there is no level to choose where nothing is fetched",
    ),
    Rule(
        "nodes.blend",
        lambda s: _adaptive(s) and s.nodes.blend,
        f'level = "{ADAPTIVE}" streams chains: chunks that are no prefixes have one level',
    ),
    Rule(
        "nodes.blend",
        lambda s: s.nodes.blend and _never(s),
        'blends what is fetched: nodes.gate must be "always" or "compare"',
    ),
    Rule(
        "nodes.joining",
        lambda s: bool(s.nodes.joining) and s.nodes.joining >= s.nodes.count,
        "somebody has to be there first: fewer must join than there are",
    ),
    Rule(
        "workload.scheduler",
        lambda s: bool(s.nodes.joining) and s.workload.scheduler in (CONDUCTOR, *ROUTERS),
        "it knows of no node that joins later: use another",
    ),
    Rule(
        "control.push",
        lambda s: s.control.push and (s.model.codec != NONE or s.model.coded_share is not None),
        "nodes keep what is pushed as it comes, undecoded: leave out the codec",
    ),
    Rule(
        "control.push",
        lambda s: s.control.push and (s.storage.kind != "stores" or s.pool.memory == "none" or _never(s)),
        "pushes blocks of the switches' pools to nodes that ask storage nodes for them",
    ),
    Rule(
        "direct.front",
        lambda s: s.direct.front == SWITCHES and s.storage.kind != "peers",
        f'"{SWITCHES}" stand before nodes that lend their memory: kind = "peers"',
    ),
    Rule(
        "workload.scheduler",
        lambda s: s.direct.front == SWITCHES and s.workload.scheduler in (CONDUCTOR, *ROUTERS),
        f'it does not look through front = "{SWITCHES}", where nodes lend: use another',
    ),
    Rule(
        "control.eviction",
        lambda s: s.direct.front == SWITCHES and s.control.eviction not in ("drop", AUTO),
        "nodes keep nothing for others, so nothing can be reclaimed: use drop",
    ),
    Rule(
        "model.level",
        lambda s: _adaptive(s) and s.storage.kind != "stores",
        'goes with storage nodes: storage.kind = "stores"',
    ),
)
"""Rules of both the emulator and the simulator."""

PLAYED: Final = (
    Rule(
        "storage.kind",
        lambda s: not s.switched,
        f'the emulator has storage nodes, or nodes that lend: direct.front = "{SWITCHES}"',
    ),
    Rule("workload.tenants", lambda s: bool(s.workload.tenants) and _conducted(s),
         "the conductor would have to know every tenant's secret"),
    Rule("workload.tenants", lambda s: bool(s.workload.tenants) and _own_model(s),
         "the file of real KV has the public namespace's keys: use a preset as MODEL"),
    Rule("workload.tenants", lambda s: bool(s.workload.tenants) and s.lends,
         "the switch lets nodes that lend name blocks of all tenants"),
    Rule("model.codec", lambda s: s.model.codec != NONE and _own_model(s),
         "real KV travels as it is, without a codec"),
    Rule("nodes.blend", lambda s: s.nodes.blend and _own_model(s),
         "the file of real KV has chains alone: use a preset as MODEL"),
    Rule("workload.scheduler", lambda s: _conducted(s) and _never(s),
         "the conductor counts on what nodes fetch: use GATE=compare"),
    Rule("nodes.hints", lambda s: s.lends and s.nodes.hints not in (ANSWERS, HOMES),
         "where nodes lend, an index says who holds what, and what waits there: use homes"),
    Rule(
        "nodes.hints",
        lambda s: not s.lends and s.nodes.hints != ANSWERS
        and (s.nodes.gate != "compare" or _adaptive(s) or s.nodes.blend or _conducted(s)),
        "the emulator has them with GATE=compare, without LEVEL=adaptive, BLEND=yes and SCHEDULER=conductor",
    ),
    Rule("nodes.gate", lambda s: s.lends and _never(s),
         "nodes that lend would have nobody who asks: use STORES=1"),
    Rule("nodes.blend", lambda s: s.nodes.blend and s.lends, "nodes that lend are asked for chains alone"),
    Rule("pool.placement", lambda s: s.lends and s.pool.placement not in (AUTO, EVERYWHERE),
         "where nodes lend, blocks come from behind every switch: use everywhere"),
    Rule("storage.replicas", lambda s: s.lends and s.storage.replicas > 1, "there are no storage nodes"),
    Rule("storage.durable", lambda s: s.lends and s.storage.durable, "there are no storage nodes"),
    Rule("storage.read_ahead", lambda s: s.lends and s.storage.read_ahead > 0, "there are no storage nodes"),
    Rule("storage.link_gbit_s", lambda s: len(s.storage.link_gbit_s) not in (0, s.storage.count),
         "there must be as many rates as storage nodes"),
    Rule("workload.scheduler", lambda s: s.workload.scheduler in ROUTERS,
         "the emulator has no switches that route"),
    Rule("workload.scheduler", lambda s: bool(s.emulation.servers) and _conducted(s),
         "its router reaches nodes of this machine only: leave out SERVERS"),
    Rule("storage.kind", lambda s: bool(s.emulation.servers) and s.lends,
         "the index of nodes that lend is reached on this machine only: leave out SERVERS"),
    Rule("model.name", lambda s: bool(s.emulation.servers) and _own_model(s),
         "real KV lies on this machine only: leave out SERVERS"),
    Rule("emulation.live", lambda s: bool(s.emulation.servers) and s.emulation.live,
         "what waits in queues is read on this machine only: leave out SERVERS"),
    Rule("emulation.metrics", lambda s: bool(s.emulation.servers) and s.emulation.metrics > 0,
         "processes are looked at on this machine only: leave out SERVERS"),
    only_default("nodes.decode", 'the emulator has decode = "apart" only'),
    only_default("nodes.loading", 'the emulator has loading = "overlapped" only'),
    only_default("nodes.asking", 'the emulator has asking = "chain" only'),
    only_default("nodes.stores_new", "the emulator's nodes store what they compute"),
    only_default("nodes.warm", 'the emulator has no warm nodes: use "no"'),
    only_default("nodes.joins_at", "the emulator's nodes join when half of the requests have come"),
    only_default("nodes.lead_s", "the emulator's nodes join a second before they are sent requests"),
    only_default("decoders.count", "the emulator has no decoders: decoding waits for nobody there"),
    only_default("model.coded_share", "the emulator codes blocks by model.codec only"),
    only_default("model.decode_gbyte_s", "the emulator codes blocks by model.codec only"),
    only_default("model.decoding", "the emulator decodes beside everything else"),
    only_default("model.layers", "the emulator has the preset models only"),
    only_default("model.gpus", "the emulator has the cost model's own GPUs only"),
    only_default("model.prefill_utilisation", "the emulator has the cost model's own GPUs only"),
    only_default("model.memory_utilisation", "the emulator has the cost model's own GPUs only"),
    only_default("model.attention", "the emulator has the cost model's own GPUs only"),
    only_default("model.launch_ms", "the emulator has the cost model's own GPUs only"),
    only_default("workload.clients", "the emulator plays traces only"),
    only_default("workload.hit_share", "the emulator plays traces only"),
    only_default("workload.load", "the emulator plays traces at their own rate: use emulation.speed"),
    only_default("workload.reuse", "the emulator plays traces as they are"),
    only_default("workload.jitter_s", "the emulator plays traces at their own times"),
    Rule("pool.memory", lambda s: s.pool.memory == "dram", "the emulator's pool serves at line rate only"),
    Rule("pool.memory", lambda s: s.pool.memory == "none", "the emulator compares by MODES: leave it out"),
    only_default("pool.multicast", "the emulator's switches multicast"),
)  # fmt: skip
"""Rules for what the emulator does not have."""

COMPARED: Final = (
    Rule("nodes.gate", _never, 'compared with the emulator is no gate = "never"'),
    Rule(
        "nodes.blend", lambda s: s.nodes.blend, "blending is not compared with the emulator here: use false"
    ),
    only_default("nodes.tiers", "compared with the emulator are exclusive tiers only"),
)
"""Rules for what is emulated and simulated, but was not compared."""

SIMULATED: Final = (
    Rule("model.name", _own_model, "the simulator has the preset models, and those of model.layers"),
    only_default("workload.tenants", "the simulator has no tenants"),
    only_default("pool.placement", "the simulator has placement = auto only"),
    only_default("storage.replicas", "the simulator keeps each block on one storage node"),
    only_default("storage.durable", "the simulator's storage nodes have no disks that fail"),
    only_default("storage.read_ahead", "the simulator's storage nodes do not read ahead"),
    only_default("storage.link_gbit_s", "the simulator's links all have network.link_gbit_s"),
    Rule("storage.count", lambda s: s.storage.kind == "stores" and not s.storage.count,
         "there is no storage: blocks need at least one storage node"),
    Rule("storage.kind", lambda s: s.lends and s.control.push, "nodes that lend are pushed nothing"),
    Rule("model.decoding", lambda s: _adaptive(s) and s.model.decoding == "gpu",
         f'level = "{ADAPTIVE}" has decoders beside the GPU: use beside or smartnic'),
    Rule("nodes.loading", lambda s: _adaptive(s) and s.nodes.loading != "overlapped",
         f'level = "{ADAPTIVE}" goes with loading = "overlapped"'),
    Rule("nodes.blend",
         lambda s: s.nodes.blend and (s.nodes.decode, s.nodes.loading) != ("apart", "overlapped"),
         'needs nodes.decode = "apart" and nodes.loading = "overlapped"'),
    Rule("nodes.warm",
         lambda s: s.nodes.warm == "pool"
         and not (s.nodes.joining and s.switched and s.pool.memory != "none"),
         "pushes what the switches' pools hold by now to nodes that join: needs both"),
    Rule("network.segments", lambda s: s.network.segments >= s.network.fragments > 1,
         "must be fewer than the fragments of a block (network.fragments)"),
    Rule("workload.load", lambda s: bool(s.workload.clients) and s.workload.load != 1.0,
         "a closed loop has no rate of arrival: leave out load or clients"),
    Rule("model.coded_share", lambda s: s.model.coded_share is not None and s.model.codec != NONE,
         "a codec has the sizes that were measured: leave out one of the two"),
    Rule("workload.scheduler", lambda s: s.workload.scheduler in ROUTERS and s.nodes.decode == "steps",
         'it does not know what nodes with decode = "steps" have to do'),
    Rule("nodes.gate", lambda s: s.nodes.decode == "budget" and not _never(s),
         'nodes with decode = "budget" fetch nothing: use gate = "never"'),
    Rule("decoders.count", lambda s: bool(s.decoders.count) and s.nodes.decode != "apart",
         'nodes with decode = "batched" decode themselves: leave out one of the two'),
    Rule("decoders.running_gb", lambda s: bool(s.decoders.count) and s.decoders.running_gb <= 0,
         "must be above 0: no request would ever start"),
    Rule("model.decoding", lambda s: s.model.decoding == "gpu" and s.nodes.decode != "batched",
         'tokens that the GPU can hold up are in decode = "batched" only'),
    Rule("model.decoding_slowdown", lambda s: 0.0 < s.model.decoding_slowdown < 1.0,
         "nothing is faster beside something else: use at least 1, or 0"),
    Rule("nodes.loading", lambda s: s.nodes.decode == "steps" and s.nodes.loading != "blocking",
         'with decode = "steps" loads are part of a step: use "blocking"'),
    Rule("nodes.running_gb", lambda s: s.nodes.decode in ("batched", "steps") and s.nodes.running_gb <= 0,
         "must be above 0: no request would ever start"),
    Rule("machine", lambda s: s.machine != Machine() and not s.switched,
         "has processes for storage nodes, and for nodes that lend past switches, only"),
    Rule("machine", lambda s: s.machine != Machine() and s.nodes.decode in ("steps", "budget"),
         'has processes for nodes with decode = "apart" and "batched" only'),
    Rule("machine", lambda s: s.machine != Machine() and bool(s.decoders.count),
         "has no processes for nodes that decode: use decoders.count = 0"),
    *(
        Rule(name, partial(lambda name, needed, s: value_of(s, name) <= 0 and needed(s), name, needed),
             "must be above 0: nothing would ever arrive")
        for name, needed in (
            ("network.link_gbit_s", lambda s: True),
            ("storage.ssd_gbyte_s", lambda s: s.storage.kind == "stores" and s.storage.ssd_gb > 0),
            ("pool.memory_gbyte_s", lambda s: s.switched and s.pool.memory == "dram"),
            ("control.writes_per_s", lambda s: s.pool.memory != "none"),
            ("direct.device_gbyte_s", lambda s: s.storage.kind == "direct"),
            ("direct.read_gbyte_s", lambda s: s.storage.kind == "direct"),
            ("direct.write_gbyte_s", lambda s: s.storage.kind == "direct"),
        )
    ),
)  # fmt: skip
"""Rules for what the simulator does not have, and against rates of zero where they matter."""
