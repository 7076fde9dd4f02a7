"""KVSwitch's routing by prefix, against all figures that its notebook
prints (result_analysis.ipynb at 8e87844).

Experiments 2, 4b and 4c have one setting in common; its published figures are their means. All others
are there once. Published times are those of Python programs on emulated switches. The time that these
take was measured with the published programs (`DIRECT_S`, `ROUTED_S`) and is added to each simulated
time to first token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import numpy as np

from experiments.validate.kvswitch_workload import BLOCK_TOKENS, ROUTING_S, Setting, Through, Way, write_trace
from experiments.validate.rows import Row
from scenario import load_scenario
from simulator.result import SimResult
from simulator.simulation import simulate
from workload.cost import MODELS

LINK_S = 0.5e-3
"""Delay of each link in seconds (--delay): a request crosses four to a worker, six through a router."""
DIRECT_S, ROUTED_S = 4.0e-3, 5.0e-3
"""Seconds that a request on its own takes beside its worker and the delays of links: directly,
and by a router.

They are those of the published client, router and worker with BMv2 and their P4 program, measured outside
this project on two otherwise idle cores of an AMD EPYC. They are medians of 300 and 600 requests of 32 to
1,400 tokens, with 20 a second. By length they are 3.7 to 4.5 and 4.4 to 5.7 ms, and do not grow with it.
"""
SEEDS = range(1, 21)
"""Seeds of the setting that is published three times."""
OTHER_SEEDS = range(1, 11)
TOLERANCE = 0.25
NO_LIMIT_GB = 1000.0
SWITCHES: Through = (
    (273, 40, 4), (187, 112, 18), (246, 54, 17), (304, 13), (317,),
    (224, 93), (236, 81), (106, 118, 78), (71, 184, 62), (205, 112),
)  # fmt: skip
PREFIX_ROUTER: Through = ((28, 23, 62), (30, 58, 55), (49, 54, 50), (28, 49, 57))
TURN_ROUTER: Through = ((33, 54, 114),)
"""Numbers of 317 first requests at once that came through at each try, by play of the published programs.

SWITCHES are those sent directly; the others went by way of the two published routers. While a router works,
its socket has room for about 28 (212,992 bytes, Linux's default). Without a router, switches or workers lose
some, at another place each time.
"""
STRAIGHT = Way(through=SWITCHES)
IN_TURN = Way(through=TURN_ROUTER, in_order=True)
ROUTES = {
    "random": ("L4-ECMP", 8 * LINK_S + DIRECT_S, STRAIGHT),
    "round_robin": ("L7-RR", 12 * LINK_S + ROUTED_S, IN_TURN),
    "longest_prefix": ("L7-PA", 12 * LINK_S + ROUTED_S, Way(ROUTING_S, PREFIX_ROUTER, in_order=True)),
    "load_reports": ("KVSwitch", 8 * LINK_S + DIRECT_S, STRAIGHT),
    "pinned_reports": ("KVSwitch, pinned", 8 * LINK_S + DIRECT_S, STRAIGHT),
}
"""Name of each scheduler, seconds of links and programs for a request and its answer, and
its way to workers."""
NOTE = (
    "KVSwitch: workers, routers, rules and workload are those of its repository, arrivals and system prompts "
    "those of the published runs, lengths of prompts and answers are drawn from the quantiles of ShareGPT "
    "that it publishes. Published figures of 8 workers, 200 requests/s are means of the three times that its "
    "notebook has this setting (p95 of KVSwitch itself: 0.10, 0.14 and 0.27 s), simulated ones of 20 seeds; "
    "of the other settings of 10. What its Python and its emulated switches take of a request by itself was "
    "measured with the published programs on another machine than theirs and is added; what they take of "
    "each other under load is not. How many of the first requests are lost and sent again was, too."
)
DEFAULT_SETTING = "8 workers, 200 requests/s"
P50, P95, HELD_SHARE, SKEW = (
    "TTFT p50, s",
    "TTFT p95, s",
    "share of blocks held",
    "busiest worker over idlest",
)
Published = dict[str, dict[str, tuple[float, ...]]]
"""Published figures by figure and scheduler, as often as each is published; times are in seconds."""

PUBLISHED_DEFAULT: Published = {
    P95: {
        "random": (0.3333, 0.2832, 0.2500),
        "round_robin": (0.1055, 0.1057, 0.1088),
        "longest_prefix": (0.5605, 0.2414, 0.3094),
        "load_reports": (0.1365, 0.2695, 0.1000),
    },
    HELD_SHARE: {
        "random": (0.495, 0.517, 0.520),
        "round_robin": (0.523, 0.531, 0.528),
        "longest_prefix": (0.758, 0.753, 0.754),
        "load_reports": (0.601, 0.577, 0.606),
    },
}
SAVED = 1 - 0.1365 / 0.5605
"""Largest share of the p95 that KVSwitch saves: experiment 2."""


def _all(**figures: Sequence[float]) -> Published:
    """Return the figures, given in the order of the first four routes; 0 stands for none."""
    names = {"p50": P50, "p95": P95, "held": HELD_SHARE, "skew": SKEW}
    found: Published = {}
    for key, values in figures.items():
        pairs = zip(ROUTES, values, strict=False)
        found[names[key]] = {route: (value,) for route, value in pairs if value}
    return found


@dataclass(frozen=True, slots=True)
class _Experiment:
    name: str
    setting: Setting
    published: Published


OTHER_EXPERIMENTS = (
    _Experiment(
        DEFAULT_SETTING,
        Setting(),
        {
            P50: {
                "random": (0.02432, 0.02266, 0.02312),
                "round_robin": (0.02521, 0.02487, 0.02478),
                "longest_prefix": (0.03015, 0.02936, 0.02892),
                "load_reports": (0.02207, 0.02202, 0.02190),
            },
            SKEW: {"random": (1.549, 1.268), "longest_prefix": (9.133, 10.0), "load_reports": (1.841, 2.0)},
        },
    ),
    _Experiment(
        "10 requests/s, cold",
        Setting(requests=200, rate_per_s=10.0, warm_per_group=0),
        _all(
            p50=(0.02854, 0.03137, 0.02906, 0.02465),
            p95=(0.03664, 0.04023, 0.04339, 0.03696),
            held=(0.2879, 0.3157, 0.6035, 0.3687),
        ),
    ),
    _Experiment(
        "10 requests/s",
        Setting(rate_per_s=10.0),
        _all(
            p50=(0.02375, 0.02651, 0.02858, 0.02351),
            p95=(0.03292, 0.03670, 0.03615, 0.03211),
            held=(0.5076, 0.5130, 0.7519, 0.5840),
            skew=(1.365, 0, 12.077, 1.604),
        ),
    ),
    _Experiment(
        "50 requests/s",
        Setting(rate_per_s=50.0),
        _all(
            p50=(0.02291, 0.02567, 0.02741, 0.02248),
            p95=(0.03177, 0.03618, 0.03542, 0.03168),
            held=(0.5333, 0.5293, 0.7548, 0.5951),
            skew=(1.449, 0, 3.083, 1.756),
        ),
    ),
    _Experiment(
        "100 requests/s",
        Setting(rate_per_s=100.0),
        _all(
            p50=(0.02236, 0.02486, 0.02678, 0.02220),
            p95=(0.03233, 0.03554, 0.04686, 0.03563),
            held=(0.5133, 0.4933, 0.7504, 0.5809),
            skew=(1.460, 0, 9.929, 1.927),
        ),
    ),
    _Experiment(
        DEFAULT_SETTING,
        Setting(),
        {
            P50: {"pinned_reports": (0.02153,)},
            P95: {"pinned_reports": (0.3776,)},
            HELD_SHARE: {"pinned_reports": (0.7281,)},
        },
    ),
    _Experiment(
        "200 requests/s, cold",
        Setting(warm_per_group=0),
        _all(p50=(0.02773, 0.02884, 0.03306, 0.02798), held=(0.3997, 0.4401, 0.6401, 0.3858)),
    ),
    *(
        _Experiment(
            f"{shared:.0%} shared, 10 requests/s, cold",
            Setting(rate_per_s=10.0, warm_per_group=0, shared=shared),
            _all(p50=p50, held=held),
        )
        for shared, p50, held in (
            (0.2, (0.02296, 0.02571, 0.02610, 0.02296), (0.0728, 0.0546, 0.1760, 0.0897)),
            (0.4, (0.02310, 0.02589, 0.02692, 0.02308), (0.1303, 0.1394, 0.3121, 0.1897)),
            (0.6, (0.02337, 0.02619, 0.02790, 0.02311), (0.2840, 0.2648, 0.4938, 0.3530)),
            (0.8, (0.02390, 0.02678, 0.02809, 0.02345), (0.4101, 0.4311, 0.6915, 0.5243)),
        )
    ),
    _Experiment(
        "4,096 tokens held",
        Setting(held_tokens=4096, budget_tokens=4096),
        _all(
            p50=(0.4023, 0.3847, 0.1634, 0.2449),
            p95=(3.0060, 2.8899, 2.5378, 2.3825),
            held=(0.2747, 0.2948, 0.7383, 0.4404),
        ),
    ),
    _Experiment(
        "16,384 tokens held",
        Setting(held_tokens=16_384),
        _all(
            p50=(0.02128, 0.02392, 0.02868, 0.02147),
            p95=(0.03019, 0.03302, 0.5586, 0.04310),
            held=(0.7234, 0.7114, 0.7545, 0.7314),
        ),
    ),
    _Experiment(
        "everything held",
        Setting(held_tokens=None),
        _all(
            p50=(0.02142, 0.02405, 0.03006, 0.02136),
            p95=(0.02974, 0.03236, 0.5843, 0.03239),
            held=(0.7317, 0.7258, 0.7565, 0.7340),
        ),
    ),
    *(
        _Experiment(
            f"{workers} workers", Setting(workers=workers), _all(p50=p50, p95=p95, held=held, skew=skew)
        )
        for workers, p50, p95, held, skew in (
            (
                16,
                (0.02206, 0.02463, 0.02643, 0.02181),
                (0.03163, 0.03411, 0.04388, 0.03156),
                (0.5089, 0.5052, 0.7545, 0.5557),
                (1.857, 0, 11.429, 2.25),
            ),
            (
                24,
                (0.02202, 0.02516, 0.02704, 0.02209),
                (0.03108, 0.03402, 0.03752, 0.03270),
                (0.4737, 0.4470, 0.7595, 0.4923),
                (2.818, 0, 13.75, 2.462),
            ),
            (
                32,
                (0.02210, 0.02485, 0.02791, 0.02251),
                (0.03215, 0.03388, 0.03886, 0.03530),
                (0.4613, 0.4519, 0.7538, 0.4626),
                (2.272, 0, 26.5, 6.429),
            ),
        )
    ),
)
"""All other figures that the notebook prints; how evenly L7-RR spreads is arithmetic and left out."""


def kvswitch(
    seeds: Iterable[int] = SEEDS,
) -> Iterator[Row]:
    """Yield the usual setting: tails and shares held under each way to route, and what KVSwitch saves."""
    found = _play(Setting(), list(ROUTES)[:4], seeds)
    yield from _rows(DEFAULT_SETTING, PUBLISHED_DEFAULT, found)
    saved = 1 - found["load_reports"][P95] / found["longest_prefix"][P95]
    figure = "TTFT p95 saved (published: up to)"
    what = f"KVSwitch over L7-PA, {DEFAULT_SETTING}"
    yield Row(what, figure, SAVED, saved, TOLERANCE, note=NOTE)


def other_settings(
    seeds: Sequence[int] = OTHER_SEEDS,
) -> Iterator[Row]:
    """Yield all other settings that the notebook prints."""
    for experiment in OTHER_EXPERIMENTS:
        routes = [route for route in ROUTES if any(route in of for of in experiment.published.values())]
        found = _play(experiment.setting, routes, seeds)
        yield from _rows(experiment.name, experiment.published, found)


def _rows(what: str, published: Published, found: dict[str, dict[str, float]]) -> Iterator[Row]:
    for route in found:
        for figure, values in published.items():
            if route in values:
                name, simulated = ROUTES[route][0], found[route][figure]
                yield Row(f"{name}, {what}", figure, fmean(values[route]), simulated, TOLERANCE, note=NOTE)


def _play(setting: Setting, routes: Iterable[str], seeds: Iterable[int]) -> dict[str, dict[str, float]]:
    """Return the means over seeds, by scheduler and figure."""
    base, _ = load_scenario(Path(__file__).parent / "scenarios" / "kvswitch.toml")
    held_bytes = MODELS["llama3-70b"].block_bytes(BLOCK_TOKENS) * (setting.held_tokens or 0) // BLOCK_TOKENS
    nodes = {
        "count": setting.workers,
        "budget_tokens": setting.budget_tokens,
        "gpu_gb": held_bytes * 1.001 / 1e9 if setting.held_tokens else NO_LIMIT_GB,
    }
    found: dict[str, dict[str, float]] = {}
    with TemporaryDirectory() as folder:
        for route in routes:
            played = []
            for seed in seeds:
                path = Path(folder) / f"{route}-{seed}.jsonl"  # a trace is read once
                _, programs_s, way = ROUTES[route]
                warm, prompts = write_trace(path, setting, seed, way)
                workload = {"trace": str(path), "requests": 10_000, "start_s": 0.0, "seed": seed}
                result = simulate(base.changed(workload=workload | {"scheduler": route}, nodes=nodes))
                on_way_s = [programs_s + way.routing_s * tokens for tokens in prompts]
                played.append(_figures(result, warm, on_way_s))
            found[route] = {figure: fmean(of[figure] for of in played) for figure in played[0]}
    return found


def _figures(result: SimResult, warm: int, on_way_s: Sequence[float]) -> dict[str, float]:
    """Return the figures of the measured requests; `on_way_s` is each one's time to its worker and back."""
    ttfts_s = [ttft_s + way_s for ttft_s, way_s in zip(result.ttfts_s[warm:], on_way_s, strict=True)]
    served = Counter(result.served_by[warm:])
    return {
        P50: percentile(ttfts_s, 0.50),
        P95: percentile(ttfts_s, 0.95),
        HELD_SHARE: fmean(result.found[warm:]),
        SKEW: max(served.values()) / min(served.values()),
    }


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value at a share as kvswitch/eval/metrics.py does: interpolated between
    the values beside it."""
    return float(np.quantile(values, share))
