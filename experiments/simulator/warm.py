"""Nodes that are warm when the first request comes, or that are being warmed: hot blocks sent unasked.

A push sends the blocks that the past used most to every node: from their homes over each link once
(`multicast`), or once for each node (`unicast`). Requests that come meanwhile share the links with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from experiments.simulator.events import Loop
from experiments.simulator.messages import Block
from experiments.simulator.network import Network
from experiments.simulator.node import Node
from experiments.simulator.workload import Library
from workload.trace import Request


def hottest(library: Library, past: Sequence[Request], count: int) -> list[Block]:
    """The blocks that most past requests used; those used once are not hot. A chain's first come first."""
    uses: Counter[Block] = Counter()
    for request in past:
        uses.update(library.chain(request))
    ordered = sorted(
        (block for block, number in uses.items() if number > 1), key=lambda block: (-uses[block], block.depth)
    )
    return ordered[:count]


def push(
    loop: Loop, network: Network, nodes: Mapping[str, Node], blocks: Sequence[Block], multicast: bool
) -> None:
    """Begin now; each node has a block when its last bit has come."""
    size_bytes = network.sizes.block_bytes * (1 + network.sizes.header_share)
    for block in blocks:
        passed: dict[tuple[str, str], float] = {}
        for name, node in nodes.items():
            vertex, tail_s = block.home, 0.0
            while vertex != name:
                neighbour = network.next_hop(vertex, name)
                hop = (vertex, neighbour)
                if not multicast or hop not in passed:
                    passed[hop] = network.links[hop].send(loop.now, size_bytes, size_bytes, tail_s)[1]
                tail_s, vertex = passed[hop], neighbour
            loop.at(tail_s, node.place, block.key)
