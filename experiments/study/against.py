"""What argues against a panel, told from the scenarios under it: what in them is simpler than it would be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from experiments.simulator.scenario import Scenario
from experiments.study.claims import share
from experiments.study.played import DESIGNS, REQUESTS_FIRST, Live, gains
from experiments.study.rivals import Done
from hostlib.gate import ANSWERS


def scenarios_of(done: Done) -> list[Scenario]:
    """Of points."""
    return [point.scenario for point, _ in done]


def all_of(*parts: str) -> str:
    """As one sentence; what does not apply is empty."""
    return "; ".join(part for part in parts if part) + "."


def favoured(scenarios: Iterable[Scenario]) -> str:
    """What is idealised of memory that nodes read directly, and of switches before it."""
    found = list(scenarios)
    parts = []
    if any(one.storage.kind == "direct" for one in found):
        parts.append("the CXL pool waits at no CPU and in no fabric here")
    if any(one.direct.front in ("merge", "pool") for one in found):
        own = any(one.lends and one.pool.memory != "none" for one in found)
        parts.append(
            "a switch in front of memory that nodes read directly is one for all reads, with neither digests "
            "nor limits of its tables"
            + (" (nodes that answer GETs have the switches' own before them)" if own else "")
        )
    return f"{', and '.join(parts)}, which favours {'them' if len(parts) > 1 else 'it'}" if parts else ""


def asked(scenarios: Iterable[Scenario]) -> str:
    """What nodes ask before they fetch, and what that waits for."""
    asking = [one for one in scenarios if one.nodes.hints != ANSWERS and one.nodes.gate == "compare"]
    messages = [one for one in asking if one.storage.kind == "stores"]
    parts = []
    if messages:
        words = _each("before blocks" if one.network.requests_first else "behind blocks" for one in messages)
        parts.append(
            f"what nodes ask homes and switches before a fetch waits at links ({words}), and takes no CPU"
        )
    if any(one.storage.kind == "peers" for one in asking):
        parts.append("what nodes ask that read one another's memory takes a round trip, whatever waits")
    return "; ".join(parts)


def inference(scenarios: Iterable[Scenario]) -> str:
    """How nodes compute, where that is simpler than an engine."""
    found = list(scenarios)
    parts = []
    if any(one.model.attention == "full" for one in found):
        parts.append("attention counts every pair of tokens, of which engines' kernels compute half")
    if any(one.model.launch_ms == 0 and one.nodes.engine_token_us == 0 for one in found):
        parts.append("no step of an engine has any overhead")
    if any(one.nodes.decode == "apart" and not one.decoders.count for one in found):
        parts.append("other nodes decode, which wait for nobody")
    batched = next((one.nodes for one in found if one.nodes.decode == "batched"), None)
    if batched is not None:
        parts.append(
            f"where nodes decode, too, chunks are {batched.chunk_tokens:,} tokens, "
            f"{batched.running_gb:.0f} GB are for requests that run, and loads of blocks hold up no token"
        )
    return "; ".join(parts)


def queues(live: Live) -> str:
    """Of requests before blocks, which not every switch has: whether that was played on the emulator."""
    played = next((gain for gain in gains(live) if gain.design is DESIGNS[REQUESTS_FIRST]), None)
    if played is None:
        return "that requests go before blocks, in a second queue at each port, is simulated alone here"
    told = f"{share(played.live)} sooner (p99 {share(played.tail)})"
    if played.simulated is not None:
        told += f", simulated {share(played.simulated)}"
    return f"a second queue at each port was played live at one setting alone: {told}"


def switches(done: Done, sweep: str) -> str:
    """Of how many a sweep's fabric is, and the largest that was played with a pool or merging in each."""
    pooled = [
        (point.setting.switches, point.sweep)
        for point, _ in done
        if point.scenario.switched and point.scenario.pool.memory != "none"
    ]
    mine = max(count for count, name in pooled if name == sweep)
    most = max(count for count, _ in pooled)
    text = f"one setting, with {_number(mine, 'switch')}"
    if most > mine:
        elsewhere = list(dict.fromkeys(name for count, name in pooled if count == most))
        text += f"; {most} with their controllers are in: {', '.join(elsewhere)}"
    return text


def around(done: Done, field: str) -> str:
    """The setting that one axis is swept around."""
    settings = [point.setting for point, _ in done]
    told = [
        _number(getattr(settings[0], name), what)
        for name, what in (("nodes", "node"), ("stores", "storage node"))
        if name != field
    ]
    return f"one axis at a time around {' and '.join(told)}; nothing is said of two"


def held_by_warm(scenarios: Sequence[Scenario]) -> str:
    """What warm nodes hold."""
    sizes = _each(f"{one.nodes.warm_gb:.0f} GB" for one in scenarios if one.nodes.warm == "there")
    return f"hold {sizes} of what was used most"


def racks(scenarios: Sequence[Scenario]) -> str:
    """Whether decoders differ in how near they are."""
    count = max((one.decoders.racks for one in scenarios), default=1)
    return f"decoders are in {count} racks" if count > 1 else "all decoders are equally near"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 'es' if what.endswith('ch') else 's'}"


def _each(words: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(words))
