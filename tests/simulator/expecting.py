"""Two nodes and two storage nodes at one switch, whose pool takes all that it hears of."""

from typing import Any

from scenario import Scenario
from simulator.control import SwitchControl
from simulator.messages import Block
from simulator.node import Node
from simulator.simulation import prepare
from simulator.system import System
from workload.trace import Request

NEW_ID = 1 << 50
"""Ids from here on are no trace's: nobody has such a block."""
TABLES: dict[str, dict[str, Any]] = {
    "workload": {"requests": 20},
    "nodes": {"count": 2},
    "storage": {"count": 2},
    "network": {"segments": 2},
    "pool": {"policy": "lru"},
    "control": {"report_count": 1, "expects": True},
}
MACHINE = {"cores": 2, "live_puts": True}


def world(**tables: dict[str, Any]) -> System:
    """As the module says, but for what is given."""
    merged = {name: {**TABLES.get(name, {}), **tables.get(name, {})} for name in {*TABLES, *tables}}
    return System(*prepare(Scenario().changed(**merged)))


def new_chain(system: System, blocks: int = 4) -> tuple[Request, list[Block]]:
    """A request for what nobody has."""
    ids = tuple(range(NEW_ID, NEW_ID + blocks))
    request = Request(0.0, blocks * system.demand.block_tokens, 1, ids)
    return request, system.library.chain(request)


def pass_time(system: System, seconds: float = 5.0) -> None:
    over = system.loop.event()
    system.loop.after(seconds, over.succeed)
    system.loop.run(until=over)


def serve(system: System, node: int, request: Request, for_s: float = 60.0) -> Node:
    """Have a node serve a request, and what follows from that; its controllers tick."""

    def tick(control: SwitchControl) -> None:
        system.loop.after(control.tick(), tick, control)

    for control in system.controls:
        tick(control)
    chain, chunks = system.library.chain(request), system.library.chunks(request)
    system.loop.start(system.nodes[node].serve(request, chain, chunks))
    pass_time(system, for_s)
    return system.nodes[node]
