"""Designs that might make the switch the best purchase, each as a change of a
scenario: points for plan.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from experiments.study.point import Point
from experiments.study.systems import ANSWERED, BASELINES, BOUND, FRONTS, PEER_SHARES, Setting, system

GATE_FAN_INS = (16, 32, 60)
DESIGN_FAN_INS = (16, 32, 46)
"""Numbers of nodes; 46 nodes and 16 storage nodes are what one switch of 63 ports connects."""
WARM_FAN_INS = (16, 32, 60)
QUICK_FAN_INS = (16,)

BLIND = "round robin"

GATES = {
    "gate by last answers": (False, False),
    "requests before blocks": (False, True),
    "homes are asked first": (True, False),
    "requests first, homes asked": (True, True),
}
"""Values of asks_homes_first and requests_first, by label."""
WARMTH_LABELS = {
    "no": "cold",
    "unicast": "pushed to each node",
    "multicast": "pushed by multicast",
    "there": "warm",
}
WARM_REQUESTS_A_NODE = 30
JOINING_PLACES = {
    "16 nodes": (16, "locality"),
    "32 nodes": (32, "locality"),
    "60 nodes": (60, "locality"),
    "32 nodes, round robin": (32, "round_robin"),
}
JOINING_SHARE = 4
"""Divisor of the nodes: one node in JOINING_SHARE joins when half of the requests have come."""
JOINED = {
    "no": "joined cold",
    "unicast": "homes push to each that joins",
    "multicast": "homes push by multicast",
    "pool": "the pool pushes",
    "there": "joined warm",
}
JOINED_BY = {
    "stores": ("no", "unicast", "multicast", "there"),
    "switch": tuple(JOINED),
    "distributed": ("no", "there"),
}
"""Kinds of warming by system; the others are compared with the last one."""
FOURFOLD_CODEC = ("cachegen", 2)
"""Codec and level; on the KV that was measured, blocks are 4.1 times smaller
than in bfloat16 (docs/blocks.md)."""
CODEC_MODEL = "llama3-70b"
"""Model of the study's centre with KV in two bytes, which codecs are measured against."""
CODECS = {
    "plain": ("none", None, "instant"),
    "coded, no time to decode": (*FOURFOLD_CODEC, "instant"),
    "coded, 64 cores decode": (*FOURFOLD_CODEC, "cpu"),
}


def gate_points(centre: Setting, quick: bool) -> Iterator[Point]:
    """Yield points for gates that know more or less, and for requests that wait behind blocks or not."""
    for nodes in QUICK_FAN_INS if quick else GATE_FAN_INS:
        setting = replace(centre, nodes=nodes)
        yield Point("gate", nodes, "recompute", setting, system("recompute", setting))
        for label, (homes_first, requests_first) in GATES.items():
            mine = replace(setting, asks_homes_first=homes_first, requests_first=requests_first)
            for name in ("stores", "switch"):
                yield Point("gate", nodes, name, mine, system(name, mine), label)


def design_points(centre: Setting, quick: bool) -> Iterator[Point]:
    """Yield points for merging and a pool before each kind of memory, also without cache-aware scheduling."""
    names = ("recompute", "stores", "merging", "switch", "distributed", "lent", "cxl", *FRONTS, *ANSWERED)
    for nodes in QUICK_FAN_INS if quick else DESIGN_FAN_INS:
        setting = replace(centre, nodes=nodes)
        for name in (*names, BOUND):
            yield Point("designs", nodes, name, setting, system(name, setting))
        for variant, share in PEER_SHARES.items():
            slower = replace(setting, peer_share=share)
            for name in ("distributed", "distributed_merge", "distributed_pool"):
                yield Point("designs", nodes, name, slower, system(name, slower), variant)
        blind = replace(setting, scheduler="round_robin")
        for name in ("recompute", "stores", "switch", "distributed", "cxl"):
            yield Point("designs", nodes, name, blind, system(name, blind), BLIND)


ENGINES = {"decoding apart": "apart", "decoding on the same GPUs": "batched"}


def engine_points(centre: Setting, quick: bool) -> Iterator[Point]:
    """Yield points that show whether decoding on the GPUs that prefill changes the ranking."""
    for nodes in QUICK_FAN_INS if quick else GATE_FAN_INS[1:2]:
        for label, decode in ENGINES.items():
            setting = replace(centre, nodes=nodes, decode=decode)
            for name in (*BASELINES, "lent", "stores", "switch"):
                yield Point("engine", nodes, name, setting, system(name, setting), label)
            four = replace(setting, stores=4)
            yield Point("engine", nodes, "stores", four, system("stores", four), label)


DECODER_FAN_INS = (16, 32, 46, 60)
DECODER_REQUESTS_A_NODE = 50
MOST_DECODERS = 256
INSTANT_KV = "KV at the decoder in no time"
NO_CHOICE = f"{MOST_DECODERS} decoders, one rack"
DECODERS: dict[str, dict[str, Any] | None] = {
    "decoders in turn": {"placing": "round_robin"},
    "decoders by load": {"placing": "load"},
    "decoders by network": {"placing": "network"},
    NO_CHOICE: {"placing": "network", "count": MOST_DECODERS, "racks": 1, "uplink_gbit_s": 0.0},
    INSTANT_KV: None,
}
"""Placement of decoders by label; with None, KV is at the decoder in no time, as in the rest of the study.

There are as many decoders as nodes, in racks that are the fabric's leaves, with uplinks as wide as its
spines. Placement by network is NetKV's. NO_CHOICE is about the best that any placement could be: only the
link of the node that prefilled is left.
"""


def decoder_points(centre: Setting, quick: bool) -> Iterator[Point]:
    """Yield points that show what choosing decoders saves, if KV moves there before the first token."""
    for nodes in QUICK_FAN_INS if quick else DECODER_FAN_INS:
        requests = max(centre.requests, 0 if quick else DECODER_REQUESTS_A_NODE * nodes)
        setting = replace(centre, nodes=nodes, requests=requests)
        fabric = setting.fabric()
        racks = int(fabric.get("leaves", 1))
        uplink = setting.link_gbit_s * int(fabric.get("spines", 0))
        for label, changed in DECODERS.items():
            decoders = {} if changed is None else {"count": nodes, "racks": racks, "uplink_gbit_s": uplink}
            for name in ("recompute", "lent"):
                scenario = system(name, setting).changed(decoders={**decoders, **(changed or {})})
                yield Point("decoders", nodes, name, setting, scenario, label)


def codec_points(centre: Setting, quick: bool) -> Iterator[Point]:
    """Yield points for blocks that a codec makes a quarter as large, in all systems."""
    for nodes in QUICK_FAN_INS if quick else GATE_FAN_INS[:2]:
        for label, (codec, level, coder) in CODECS.items():
            setting = replace(centre, nodes=nodes, model=CODEC_MODEL, codec=codec, level=level, coder=coder)
            for name in ("stores", "switch", "distributed"):
                yield Point("codec", nodes, name, setting, system(name, setting), label)
        plain = replace(centre, nodes=nodes, model=CODEC_MODEL)
        yield Point("codec", nodes, "recompute", plain, system("recompute", plain), "plain")


def joining_points(centre: Setting, quick: bool) -> Iterator[Point]:
    """Yield points for the same requests on nodes of which some join cold, being warmed, or warm."""
    for place in list(JOINING_PLACES)[:1] if quick else JOINING_PLACES:
        nodes, scheduler = JOINING_PLACES[place]
        requests = WARM_REQUESTS_A_NODE * nodes
        setting = replace(centre, nodes=nodes, requests=requests, scheduler=scheduler)
        for name, kinds in JOINED_BY.items():
            for kind in kinds:
                changed = {"joining": nodes // JOINING_SHARE, "warm": kind}
                scenario = system(name, setting).changed(nodes=changed)
                yield Point("joining", place, name, setting, scenario, JOINED[kind])


def warm_points(centre: Setting, quick: bool) -> Iterator[Point]:
    """Yield points for the same requests on nodes that are cold, that are being warmed, and that are warm."""
    for nodes in QUICK_FAN_INS if quick else WARM_FAN_INS:
        requests = (
            min(centre.requests, WARM_REQUESTS_A_NODE * nodes) if quick else WARM_REQUESTS_A_NODE * nodes
        )
        setting = replace(centre, nodes=nodes, requests=requests)
        for name in ("recompute", "stores", "switch", "distributed"):
            kinds = ("no", "there") if name in ("recompute", "distributed") else tuple(WARMTH_LABELS)
            for kind in kinds:
                scenario = system(name, setting).changed(nodes={"warm": kind})
                yield Point("cold", nodes, name, setting, scenario, WARMTH_LABELS[kind])
