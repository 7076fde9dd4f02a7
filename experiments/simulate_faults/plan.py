"""Plan of one run: what is done, and what goes wrong. All of it follows from a seed."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from commands.errors import OptionError

if TYPE_CHECKING:
    from pathlib import Path

NODES: Final = 4
STORES: Final = 4
MEAN_GAP_S: Final = 0.01
MEAN_FAULT_GAP_S: Final = 1.5
READS: Final = 0.72
DURABLE: Final = 0.7
MAX_FRAGMENTS: Final = 8
CHAIN_BLOCKS: Final = 4
"""Keys belong to chains of this length."""
CHAINS: Final = 0.1
"""Share of reads that are of whole chains; each is one operation."""


@dataclass(frozen=True, slots=True)
class Load:
    """Load: which blocks are read, written and deleted."""

    operations_per_key: int
    key_spread: float
    """Mean distance of a write behind the newest key, in keys."""
    reads_behind: int
    """Keys by which a read is further behind, as most of them have been written by then."""
    deletes: float
    """Share of all operations."""
    lifetimes: float
    """Share of the deletions that take effect after a time."""


USUAL: Final = Load(5, 6.0, 4, 0.03, 0.0)
HARSH: Final = Load(40, 2.0, 0, 0.12, 0.1)
"""Blocks are written and deleted again and again."""
HARSH_EVERY: Final = 4
"""One of this many seeds is harsh: nearly all the time frames come late, or twice."""
STAR, LEAF_SPINE, RACKS, LENDING = TOPOLOGIES = ("star", "leafspine", "racks", "lending")
"""See `experiments.simulate_faults.topology`."""
MANY_SWITCHES_EVERY: Final = 2 * HARSH_EVERY
"""Number of seeds of which one, which is harsh, has more than one switch."""
TURNS: Final = (LEAF_SPINE, RACKS, LEAF_SPINE, LENDING)
"""Topologies of these seeds, one after the other."""
LATE: Final = 0.2
TWICE: Final = 0.3
LIFETIMES_S: Final = (1, 2, 3)

NETWORK_FAULTS: Final = ("lose", "reorder", "duplicate", "flip")
STORE_FAULTS: Final = ("kill_store", "slow_store", "full_disk", "failing_disk")
GRAY_FAULTS: Final = ("deaf", "mute", "black_hole", "lossy_port", "slow_disk")
"""Faults of which only a part fails: one way of a link, its long frames, some of them, a disk's speed."""
OTHER_FAULTS: Final = (
    *GRAY_FAULTS, "cut", "restart_switch", "restart_controller", "second_controller", "kill_node",
    "stop_clock", "step_wall_clock", "flip_slots",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operation:
    """A block or a chain read, or deleted, or (`fragments` above 0) a block written."""

    at_s: float
    number: int
    """Also says what is written."""
    node: int
    key: int
    fragments: int = 0
    durable: bool = False
    replicas: int = 1
    chain: bool = False
    """Read the chain that the key is in, from its first block on."""
    delete: bool = False
    """Delete the block."""
    lifetime_s: int = 0
    """Seconds after which the block is deleted; 0 for at once."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong from `at_s` on, for `for_s`."""

    at_s: float
    kind: str
    targets: tuple[int, ...] = ()
    """Stores by number from 0; of links, hosts: stores, then nodes."""
    for_s: float = 0.0
    amount: float = 0.0
    """A share of packets, or seconds; by kind."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One run. `seed` also decides which packets suffer."""

    seed: int
    replicas: int
    """Number of replicas in the list of members."""
    operations: tuple[Operation, ...]
    faults: tuple[Fault, ...]
    topology: str = STAR
    """One of TOPOLOGIES."""

    def write(self, path: Path) -> None:
        """Write the plan as JSON, for `read`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self)) + "\n")


def read(path: Path) -> Plan:
    """Return a plan that was written; raises OptionError or OSError for anything else."""
    try:
        given: dict[str, Any] = json.loads(path.read_text())
        operations = tuple(Operation(**one) for one in given["operations"])
        faults = tuple(Fault(**{**one, "targets": tuple(one["targets"])}) for one in given["faults"])
        return Plan(given["seed"], given["replicas"], operations, faults, given["topology"])
    except (KeyError, TypeError, ValueError) as error:
        raise OptionError(f"PLAN {path}: no plan of this program ({error})") from None


def make(seed: int, operations: int) -> Plan:
    """Return the plan of a seed."""
    rng = random.Random(seed)
    replicas, is_harsh = rng.randint(1, 3), not seed % HARSH_EVERY
    at, rest = divmod(seed, MANY_SWITCHES_EVERY)
    topology, load = STAR if rest else TURNS[at % len(TURNS)], HARSH if is_harsh else USUAL
    if topology == LENDING:
        replicas, load = 1, USUAL
    made = tuple(_operations(rng, operations, replicas, load))
    end_s = made[-1].at_s if made else 0.0
    faults = _faults(rng, end_s) + (_late_frames(rng, end_s) if is_harsh else [])
    return Plan(seed, replicas, made, tuple(sorted(faults, key=lambda fault: fault.at_s)), topology)


def _operations(rng: random.Random, count: int, replicas: int, load: Load) -> list[Operation]:
    at_s, made = 1.0, []
    for number in range(count):
        at_s += rng.expovariate(1 / MEAN_GAP_S)
        newest, behind = number // load.operations_per_key, int(rng.expovariate(1 / load.key_spread))
        node = rng.randrange(NODES)
        if rng.random() < READS:
            key = max(0, newest - behind - load.reads_behind)
            made.append(Operation(at_s, number, node, key, chain=rng.random() < CHAINS))
            continue
        key = max(0, newest - behind)
        if rng.random() < load.deletes / (1 - READS):
            lifetime_s = rng.choice(LIFETIMES_S) if load.lifetimes and rng.random() < load.lifetimes else 0
            made.append(Operation(at_s, number, node, key, delete=True, lifetime_s=lifetime_s))
            continue
        fragments, durable = rng.randint(1, MAX_FRAGMENTS), rng.random() < DURABLE
        made.append(Operation(at_s, number, node, key, fragments, durable, rng.randint(1, replicas)))
    return made


def _faults(rng: random.Random, end_s: float) -> list[Fault]:
    kinds = (*NETWORK_FAULTS, *STORE_FAULTS, *STORE_FAULTS, *OTHER_FAULTS)
    at_s, made = 1.0, []
    while (at_s := at_s + rng.expovariate(1 / MEAN_FAULT_GAP_S)) < end_s:
        made.append(_fault(rng, at_s, rng.choice(kinds)))
    return made


def _late_frames(rng: random.Random, end_s: float) -> list[Fault]:
    at_s, made = 1.0, []
    while at_s < end_s:
        for_s = rng.choice((0.5, 3.0))
        made += [Fault(at_s, "late", (), for_s, LATE), Fault(at_s, "duplicate", (), for_s, TWICE)]
        at_s += for_s + rng.expovariate(1.0)
    return made


def _fault(rng: random.Random, at_s: float, kind: str) -> Fault:
    for_s = rng.choice((0.05, 0.4, 2.0)) * rng.uniform(0.5, 1.5)
    if kind in NETWORK_FAULTS:
        return Fault(at_s, kind, (), for_s, rng.choice((0.001, 0.01, 0.05, 0.2)))
    if kind == "cut":
        hosts = rng.sample(range(STORES + NODES), rng.randint(1, 3))
        return Fault(at_s, kind, tuple(hosts), for_s)
    if kind in GRAY_FAULTS:
        host = rng.randrange(STORES if kind == "slow_disk" else STORES + NODES)
        return Fault(at_s, kind, (host,), rng.choice((2.0, 8.0)) * rng.uniform(0.5, 1.5))
    if kind == "slow_store":
        return Fault(at_s, kind, (rng.randrange(STORES),), for_s, rng.choice((0.005, 0.05, 0.25)))
    if kind in ("stop_clock", "step_wall_clock"):
        return Fault(at_s, kind, (), 0.0, rng.choice((0.03, 0.3, 3.0)))
    target = rng.randrange(NODES if kind == "kill_node" else STORES)
    return Fault(at_s, kind, (target,), for_s, rng.choice((1, 3)))
