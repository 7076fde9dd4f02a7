"""Adversarial shapes: each defeats one way to choose what a cache keeps. Sessions are as in `shapes.py`.

Sizes are relative to HOT_BLOCKS, so a shape is hardest for a pool of about that many blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random

from workload.drafts import Draft, Sessions, Shape, starts, zipf_weights

HOT_BLOCKS = 1000
"""Number of blocks in the working set that the shapes are built around."""
BLOCK_TOKENS = 512
CHAIN_BLOCKS = 10
_CHAINS = HOT_BLOCKS // CHAIN_BLOCKS


def _request(now_s: float, name: str) -> list[Draft]:
    return [Draft(now_s, ((name, CHAIN_BLOCKS * BLOCK_TOKENS),), 100)]


def _zipf(rng: Random, prefix: str, chains: int, exponent: float = 0.9) -> Iterator[str]:
    """Yield names of chains, drawn by a Zipf law; the first name is the most popular."""
    weights = zipf_weights(chains, exponent)
    names = [f"{prefix} {rank}" for rank in range(chains)]
    while True:
        yield from rng.choices(names, weights, k=1000)


def scan_floods(rng: Random, per_s: float) -> Sessions:
    """Yield requests for a popular set and, in every second phase, mostly for chains asked for only once."""
    popular, scanned = _zipf(rng, "hot", 2 * _CHAINS), count()
    for number, now_s in enumerate(starts(rng, per_s)):
        flooded = number // (4 * _CHAINS) % 2
        yield _request(now_s, f"scan {next(scanned)}" if flooded and rng.random() < 0.9 else next(popular))


def one_hit_wonders(rng: Random, per_s: float) -> Sessions:
    """Yield requests of which 70 % are for chains that never return, the others for a popular set."""
    popular, wonders = _zipf(rng, "hot", 4 * _CHAINS), count()
    for now_s in starts(rng, per_s):
        yield _request(now_s, f"wonder {next(wonders)}" if rng.random() < 0.7 else next(popular))


def loop(rng: Random, per_s: float) -> Sessions:
    """Yield the same chains in the same order again and again: a fifth more than HOT_BLOCKS."""
    chains = _CHAINS * 6 // 5
    for number, now_s in enumerate(starts(rng, per_s)):
        yield _request(now_s, f"loop {number % chains}")


def phases(rng: Random, per_s: float) -> Sessions:
    """Yield phases of popularity, recency and a loop in turn: what is right in one phase is wrong in the
    next."""
    popular, fresh = _zipf(rng, "popular", 4 * _CHAINS), 0
    for number, now_s in enumerate(starts(rng, per_s)):
        phase, step = divmod(number, 12 * _CHAINS)
        if phase % 3 == 0:
            name = next(popular)
        elif phase % 3 == 1:
            fresh += rng.random() < 0.3
            name = f"fresh {fresh - min(fresh, int(rng.expovariate(1 / (0.3 * _CHAINS))))}"
        else:
            name = f"loop {phase} {step % (_CHAINS * 3 // 2)}"
        yield _request(now_s, name)


def inversions(rng: Random, per_s: float) -> Sessions:
    """Yield requests by popularity, which is inverted from time to time: counts mislead."""
    chains = 4 * _CHAINS
    weights = zipf_weights(chains, 1.0)
    for number, now_s in enumerate(starts(rng, per_s)):
        rank = rng.choices(range(chains), weights)[0]
        inverted = number // (20 * _CHAINS) % 2
        yield _request(now_s, f"chain {chains - 1 - rank if inverted else rank}")


def due_turns(rng: Random, per_s: float) -> Sessions:
    """Yield each chain exactly twice, the second time after about 2 * HOT_BLOCKS blocks.

    The chains that were asked for last are thus the wrong ones to keep.
    """
    waiting: list[str] = []
    for number, now_s in enumerate(starts(rng, per_s)):
        if len(waiting) > 2 * _CHAINS and rng.random() < 0.5:
            yield _request(now_s, waiting.pop(0))
        else:
            waiting.append(f"turn {number}")
            yield _request(now_s, waiting[-1])


def soon_again(rng: Random, per_s: float) -> Sessions:
    """Yield two kinds of phases in turn, which call for opposite choices.

    In the first, most chains never return and the others are a popular set: the newest should leave. In the
    second, each chain returns once, and soon: the newest should stay.
    """
    popular, wonders = _zipf(rng, "hot", 4 * _CHAINS), count()
    waiting: list[str] = []
    for number, now_s in enumerate(starts(rng, per_s)):
        if number // (20 * _CHAINS) % 2 == 0:
            name = f"wonder {next(wonders)}" if rng.random() < 0.7 else next(popular)
        elif len(waiting) > _CHAINS * 3 // 5 and rng.random() < 0.5:
            name = waiting.pop(0)
        else:
            name = f"once {number}"
            waiting.append(name)
        yield _request(now_s, name)


def decoys(rng: Random, per_s: float) -> Sessions:
    """Yield bursts of requests for chains that then never return, beside chains asked for rarely for ever."""
    steady, burst, left = _zipf(rng, "steady", _CHAINS, 0.1), 0, 0
    for now_s in starts(rng, per_s):
        if rng.random() < 0.4:
            yield _request(now_s, next(steady))
            continue
        if not left:
            burst, left = burst + 1, 2 + rng.randrange(12)
        left -= 1
        yield _request(now_s, f"burst {burst}")


def flood(rng: Random, per_s: float) -> Sessions:
    """Yield requests of two tenants: one repeats a loop far larger than the pool, the other has a popular
    set.

    The loop has nine times the popular set's rate.
    """
    popular = _zipf(rng, "tenant 1 hot", _CHAINS // 2)
    for number, now_s in enumerate(starts(rng, per_s)):
        name = next(popular) if rng.random() < 0.1 else f"tenant 0 loop {number % (10 * _CHAINS)}"
        yield _request(now_s, name)


ADVERSARIAL = {
    shape.name: shape
    for shape in (
        Shape("scan_floods", "a popular set and floods of chains asked once", 8.0, scan_floods),
        Shape("one_hit_wonders", "most chains never return", 8.0, one_hit_wonders),
        Shape("loop", "a loop a fifth larger than 1,000 blocks", 8.0, loop),
        Shape("phases", "popularity, recency and a loop by turns", 8.0, phases),
        Shape("inversions", "the most popular become the least popular", 8.0, inversions),
        Shape("due_turns", "each chain returns once, after 2,000 blocks", 8.0, due_turns),
        Shape("soon_again", "by turns one-hit wonders, and chains that return once, soon", 8.0, soon_again),
        Shape("decoys", "bursts that end for good, beside steady chains", 8.0, decoys),
        Shape("flood", "one tenant floods, another has a popular set", 8.0, flood),
    )
}
