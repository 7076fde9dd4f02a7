"""What a real live pool was asked for, and what it had: a play of `make run MODES=pool`, block by block.

From the records of the nodes: which blocks each request asked the network for (what its node's own memory
held is not among them), when, and whether a switch served them. Times are seconds of the network from
LEAD_S before the first request on."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final

from experiments.options import OptionError
from experiments.policies.switch_model import Wanted
from experiments.run.emulation import Measurements
from experiments.run.evaluate import evaluate, strain
from experiments.run.options import RunOptions, parse_options
from experiments.run.scenario import Scenario
from hostlib.members import Members
from hostlib.wire import fingerprint
from workload.shapes import SHAPES
from workload.trace import Request

LEAD_S: Final = 5.0
"""From the start of switch and controller to the first request."""
REQUESTS: Final = 800


@dataclass(frozen=True, slots=True)
class Get:
    """A block that a node asked the network for."""

    request: int
    """Number of the request."""
    wanted: Wanted
    parent: bytes | None
    asked_s: float
    value_s: float
    """When the value of its first fragment came."""
    rest_s: float
    """When its other fragments were asked for."""
    done_s: float
    found: bool
    """Whether somebody had it."""
    served: bool
    """Whether a switch did, which counts as a hit."""


@dataclass(frozen=True, slots=True)
class Computed:
    """Blocks of one request that a node computed, and put."""

    node: IPv4Address
    blocks: list[Wanted]
    told_s: float
    """When it began, and told the controller so if it does that."""
    put_s: float
    """When they began to leave for their homes."""


@dataclass(frozen=True, slots=True)
class Play:
    """One play of a real pool."""

    scenario: Scenario
    arrivals_s: list[float]
    """Of each request."""
    gets: list[Get]
    """In the order in which they were asked."""
    computed: list[Computed]
    admitted: int
    evicted: int
    reports: int
    """Digests, and blocks that nodes said they will put."""
    controller_share: float
    """Of the CPUs."""
    complaints: list[str]
    """Why the machine did not keep up; none if it did."""

    @property
    def homes(self) -> tuple[IPv4Address, ...]:
        """The storage nodes."""
        fabric = self.scenario.fabric
        return tuple(fabric.hosts[name].ipv4 for name in fabric.stores)


def drawn(seed: int, results: Path, fixed: Mapping[str, str]) -> RunOptions:
    """A scenario that nobody chose: its shape, nodes, pool and nodes' memory follow from the seed.

    `fixed`: options of `make run` that are given. Raises OptionError.
    """
    chooser = random.Random(f"live {seed}")
    gpu = chooser.choice((16, 64))
    given = {
        "shape": chooser.choice(tuple(SHAPES)),
        "hosts": str(chooser.choice((4, 8))),
        "pool-blocks": str(chooser.choice((100, 200, 400, 800))),
        "gpu-blocks": str(gpu),
        "dram-blocks": str(2 * gpu),
        "seed": str(seed),
        "requests": str(REQUESTS),
        "scale": "40000",
        "modes": "pool",
        "results": str(results),
        "traces": "yes",  # has nodes keep the times of each block; packets are captured by `make run` alone
    } | dict(fixed)
    arguments = [part for name, value in given.items() for part in (f"--{name}", value)]
    options = parse_options(arguments, "python -m experiments.policies", "")
    if options.lends:
        raise OptionError(
            "STORES: PLAYS needs storage nodes, not 0: its replay knows nothing of nodes that lend"
        )
    if options.store_gbit_s is not None:
        raise OptionError("STORE_GBIT: PLAYS has links of one rate, as its replay does")
    return options


def played(scenario: Scenario, measured: Measurements) -> Play:
    """From what the processes measured."""
    fabric, options = scenario.fabric, scenario.options
    members = Members.of([str(fabric.hosts[name].ipv4) for name in fabric.stores], options.replicas)
    reader = _Reader(scenario, members, measured.start_s - LEAD_S)
    gets: list[Get] = []
    computed: list[Computed] = []
    arrivals_s: list[float] = []
    for node in fabric.nodes:
        records = measured.workers[node]["records"]
        for request, record in zip(scenario.shares[node], records, strict=True):
            gets += reader.gets(len(arrivals_s), request, record)
            computed += reader.computed(fabric.hosts[node].ipv4, request, record)
            arrivals_s.append(LEAD_S + request.arrival_s)
    totals = measured.controller
    return Play(
        scenario,
        arrivals_s,
        sorted(gets, key=lambda get: (get.asked_s, get.request, get.wanted.depth)),
        computed,
        totals["admitted"],
        totals["evicted"],
        totals["digests"] + totals["expected"],
        strain(measured).control,
        evaluate(measured).complaints,
    )


class _Reader:
    def __init__(self, scenario: Scenario, members: Members, zero_s: float) -> None:
        self._scenario, self._members, self._zero_s = scenario, members, zero_s
        self._keys = scenario.key_space

    def gets(self, number: int, request: Request, record: Mapping[str, Any]) -> list[Get]:
        """What one request asked for, found or not."""
        chain = list(self._keys.chain(request.blocks))
        fetched = {entry["depth"]: entry for entry in record["blocks"] or ()}
        gets = [self._found(number, chain, depth, entry) for depth, entry in sorted(fetched.items())]
        if record["missing"] is not None:
            first = chain.index(bytes.fromhex(record["missing"]))
            asked_s = min((get.asked_s for get in gets), default=LEAD_S + request.arrival_s)
            ended_s = LEAD_S + (record["ttft_s"] or 0.0) + request.arrival_s
            # The node's own memory held nothing behind: it would have been of no use, and is computed again.
            gets += [
                Get(number, self._wanted(chain, depth), _parent(chain, depth), asked_s, asked_s, asked_s,
                    ended_s, found=False, served=False)
                for depth in range(first, len(chain))
            ]  # fmt: skip
        return gets

    def computed(self, node: IPv4Address, request: Request, record: Mapping[str, Any]) -> list[Computed]:
        """What one request's node computed and put, if anything."""
        if not record["expected"]:
            return []
        chain = list(self._keys.chain(request.blocks))
        blocks = [self._wanted(chain, depth) for depth in record["expected"]]
        put_s = LEAD_S + record["ttft_s"] + request.arrival_s
        return [Computed(node, blocks, record["expected_s"] - self._zero_s, put_s)]

    def _found(self, number: int, chain: Sequence[bytes], depth: int, entry: Mapping[str, Any]) -> Get:
        asked_s, value_s, rest_s, done_s = (
            entry[name] - self._zero_s for name in ("probe_sent_s", "probed_s", "body_sent_s", "done_s")
        )
        served = 2 * entry["pool_fragments"] > entry["fragments"]
        wanted, parent = self._wanted(chain, depth), _parent(chain, depth)
        return Get(number, wanted, parent, asked_s, value_s, rest_s, done_s, found=True, served=served)

    def _wanted(self, chain: Sequence[bytes], depth: int) -> Wanted:
        scenario, key = self._scenario, chain[depth]
        recompute_ms = round(1000 * scenario.scale.duration_s(scenario.cost.block_prefill_s(depth)))
        home = IPv4Address(self._members.homes(key)[0].address)
        parent = fingerprint(chain[depth - 1]) if depth else 0
        return Wanted(key, depth, len(chain), parent, home, recompute_ms, scenario.fragments)


def _parent(chain: Sequence[bytes], depth: int) -> bytes | None:
    return chain[depth - 1] if depth else None
