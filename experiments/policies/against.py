"""A live pool against replays of the very requests that its switch saw: told all, and told as coarsely.

What a hit is worth is reckoned as in any replay (`replay.py`): the lesser of computing the block and its
transfer behind what earlier requests left waiting without a pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from random import Random
from statistics import mean

from controller.block_id import block_id
from controller.hit_meter import MIN_PERIOD_S
from controller.policies import Admit, Evict, Hits, Miss, Policy, make_policy
from controller.residual_value import ResidualValue
from experiments.policies.played import Get, Play
from experiments.policies.stores import Stores
from experiments.policies.told import Telling, ToldPool


@dataclass(frozen=True, slots=True)
class Figures:
    """What a pool did for the requests."""

    block_hits: float
    prefix_hits: float
    saved_s: float
    admissions: float
    evictions: float
    reports: float
    """Digests, and blocks that nodes said they will put; events of a policy that is told all."""


def live_figures(play: Play) -> Figures:
    """Those of the real pool."""
    return _figures(play, [get.served for get in play.gets], play.admitted, play.evicted, play.reports)


def firsts(play: Play) -> list[int]:
    """For each block that was asked for, the number of the one whose fetch it was: requests at a node that
    want the same block at the same time share it, and the switch sees one."""
    seen: dict[tuple[bytes, float, float], int] = {}
    return [
        seen.setdefault((get.wanted.key, get.asked_s, get.done_s), number) if get.found else number
        for number, get in enumerate(play.gets)
    ]


def told_all(play: Play) -> Figures:
    """A policy that hears each request at once, and is obeyed at once: a block that is written or fetched is
    there."""
    policy = _policy(play, play.scenario.pool_size.whole_blocks)
    hits: list[bool] = []
    admitted = evicted = 0
    for number, (first, get) in enumerate(zip(firsts(play), play.gets, strict=True)):
        if first != number:
            hits.append(hits[first])
            continue
        wanted, key = get.wanted, block_id(0, get.wanted.key)
        hits.append(get.found and key in policy)
        if key in policy:
            policy.handle(Hits(key, get.asked_s))
            continue
        parent = None if get.parent is None else block_id(0, get.parent)
        place = wanted.depth, wanted.chain_blocks, parent, 1, int(wanted.home)
        decisions = policy.handle(Miss(key, get.asked_s, *place))
        admitted += sum(isinstance(decision, Admit) for decision in decisions)
        evicted += sum(isinstance(decision, Evict) for decision in decisions)
    return _figures(play, hits, admitted, evicted, len(hits))


TIMES = 8
"""Which of two blocks leaves first depends on the order of what comes within milliseconds, and on when
counters are read; so a live pool differs from itself when it is played again."""
JITTER_S = 0.001


def told_as_live(play: Play, telling: Telling) -> Figures:
    """The mean over different orders within JITTER_S and phases of reading the counters."""
    runs = [astuple(Coarse(play, telling, seed).run()) for seed in range(TIMES)]
    return Figures(*map(mean, zip(*runs, strict=True)))


class Coarse:
    """The requests through a pool that is told what a switch tells, at the times at which they were made.

    Homes report no backlog, as in the plays: nodes' windows keep what waits there below a millisecond, and of
    1,111 digests of one play none had any.
    """

    def __init__(self, play: Play, telling: Telling, seed: int = 0) -> None:
        scenario = play.scenario
        self._play = play
        self._chooser = Random(seed)
        self._block_s = scenario.scale.duration_s(_transfer_s(play))
        self._told = ToldPool(
            lambda blocks, slots: _policy(play, blocks, slots),
            scenario.pool_size,
            play.homes,
            ResidualValue(scenario.cost, scenario.options.link_gbit_s * 1e9, scenario.scale.speed),
            telling,
            dict.fromkeys(play.homes, self._block_s),
            seed=seed,
            read_at_s=self._chooser.uniform(0.0, MIN_PERIOD_S),
        )
        self._served = [0] * len(play.gets)
        self._firsts = firsts(play)

    def run(self) -> Figures:
        """Play it all."""
        told = self._told
        for number, get in enumerate(self._play.gets):
            if self._firsts[number] != number:
                continue
            if get.found:
                told.at(get.asked_s, self._ask, number, get)
        for computed in self._play.computed:
            told.at(computed.told_s, told.computes, computed.blocks, computed.node)
            for block in computed.blocks:
                told.at(computed.put_s, told.switch.put, block)
        told.until(max(get.done_s for get in self._play.gets) + 1.0)
        hits = [
            2 * self._served[first] > get.wanted.fragments
            for first, get in zip(self._firsts, self._play.gets, strict=True)
        ]
        counts = told.pool.counts
        return _figures(self._play, hits, counts.admitted, counts.evicted, told.reports)

    def _ask(self, number: int, get: Get) -> None:
        served = self._told.switch.probe(get.wanted, get.asked_s)
        self._served[number] += bool(served)
        if served is False:
            value_s = get.value_s + self._chooser.uniform(0.0, JITTER_S)
            self._told.at(value_s, self._told.switch.value, get.wanted, value_s)
        if get.wanted.fragments > 1:
            self._told.at(get.rest_s, self._rest, number, get)

    def _rest(self, number: int, get: Get) -> None:
        held = self._told.switch.rest(get.wanted)
        self._served[number] += held
        if held < get.wanted.fragments - 1:
            first_s = max(get.rest_s, get.done_s - self._block_s)
            self._told.at(get.done_s, self._told.switch.rest_values, get.wanted, first_s, get.done_s)


def _policy(play: Play, blocks: int, slots: int | None = None) -> Policy:
    options, cost = play.scenario.options, play.scenario.cost
    link_bit_s = options.link_gbit_s * 1e9
    return make_policy(
        options.policy, blocks, seed=options.seed, cost=cost, link_bit_s=link_bit_s, capacity_slots=slots
    )


def _transfer_s(play: Play) -> float:
    cost = play.scenario.cost
    return cost.fetch_s(cost.stored_bytes, play.scenario.options.link_gbit_s * 1e9)


def _figures(play: Play, hits: Sequence[bool], admitted: int, evicted: int, reports: int) -> Figures:
    cost, speed = play.scenario.cost, play.scenario.scale.speed
    places = {home: number for number, home in enumerate(play.homes)}
    transfer_s = _transfer_s(play)
    links = Stores([transfer_s] * len(places))
    by_request: dict[int, list[tuple[Get, bool]]] = {}
    for get, hit in zip(play.gets, hits, strict=True):
        by_request.setdefault(get.request, []).append((get, hit))
    prefix_hits, saved_s = 0, 0.0
    for request in sorted(by_request, key=lambda number: play.arrivals_s[number]):
        asked = sorted(by_request[request], key=lambda one: one[0].wanted.depth)
        now_s = play.arrivals_s[request] * speed
        waits_s = links.waits_s(now_s)
        for get, hit in asked:
            if not hit:
                break
            prefix_hits += 1
            wait_s = waits_s[places[get.wanted.home]]
            saved_s += min(cost.block_prefill_s(get.wanted.depth), wait_s + transfer_s)
        for get, _ in asked:
            if get.found:
                links.send(places[get.wanted.home], now_s)
    return Figures(sum(hits), prefix_hits, saved_s, admitted, evicted, reports)
