"""Who asks whom for what: flows of blocks towards links that they share. Pure and seeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count

from experiments.incast.result import jain
from hostlib.protocol.homes import home_of

STORES_TO_NODE, STORE_TO_NODES, BOTH = "stores_to_node", "store_to_nodes", "both"


@dataclass(frozen=True, slots=True)
class Flow:
    """The blocks that a node asks one storage node for."""

    node: str
    store: str
    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Flows that share one link, that of a node or of a storage node."""

    link: str
    flows: tuple[Flow, ...]


class Keys:
    """New keys by home; `stores`: addresses by name."""

    def __init__(self, stores: Mapping[str, str], seed: int) -> None:
        self._names = {address: name for name, address in stores.items()}
        self._numbers, self._seed = count(), seed
        self._spare: dict[str, list[bytes]] = {name: [] for name in stores}

    def of(self, store: str, wanted: int) -> tuple[bytes, ...]:
        """So many keys whose home this is, each handed out once."""
        spare = self._spare[store]
        while len(spare) < wanted:
            key = blake2b(f"{self._seed} {next(self._numbers)}".encode(), digest_size=16).digest()
            self._spare[self._names[home_of(key, list(self._names))]].append(key)
        self._spare[store] = spare[wanted:]
        return tuple(spare[:wanted])


def groups(
    pattern: str, nodes: Sequence[str], stores: Sequence[str], keys: Keys, blocks: int
) -> tuple[Group, ...]:
    """Return the groups in which each link that is shared is to carry `blocks` blocks for each node that
    there is.

    Of `both`, the first node's link and the first storage node's are apart.
    """

    def to_node(asked: Sequence[str]) -> Group:
        each = blocks * len(nodes) // len(asked)
        return Group(nodes[0], tuple(Flow(nodes[0], store, keys.of(store, each)) for store in asked))

    def of_store(asking: Sequence[str]) -> Group:
        return Group(stores[0], tuple(Flow(node, stores[0], keys.of(stores[0], blocks)) for node in asking))

    if pattern == STORES_TO_NODE:
        return (to_node(stores),)
    if pattern == STORE_TO_NODES:
        return (of_store(nodes),)
    return to_node(stores[1:]), of_store(nodes[1:])


def fairness_of(group: Group, took: Mapping[Flow, float]) -> float:
    """Jain's index of the goodput of the nodes that share a link; `took`: until a flow had all its blocks."""
    nodes = {flow.node for flow in group.flows}
    blocks = {node: sum(len(flow.keys) for flow in group.flows if flow.node == node) for node in nodes}
    until = {node: max(took[flow] for flow in group.flows if flow.node == node) for node in nodes}
    return jain([blocks[node] / until[node] for node in sorted(nodes)])
