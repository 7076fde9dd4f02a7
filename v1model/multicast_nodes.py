"""BMv2's view of replication: nodes with handles, groups of nodes, and clone sessions of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from v1model.dataplane import CloneSession, Replica

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Protocol

    class Replication(Protocol):
        """Part of a data plane that nodes need."""

        def set_multicast_group(self, group: int, replicas: Iterable[Replica] | None) -> None: ...
        def multicast_groups(self) -> Mapping[int, tuple[Replica, ...]]: ...
        def set_clone_session(self, session: int, config: CloneSession | None) -> None: ...


MAX_NODES = 4096  # as many as BMv2 has


@dataclass(frozen=True, slots=True)
class Node:
    """Copies with one replication id.

    BMv2 stores ports in a bit map, so copies leave in the order of ports.
    """

    instance: int
    ports: tuple[int, ...]

    def replicas(self) -> tuple[Replica, ...]:
        return tuple(Replica(port, self.instance) for port in sorted(self.ports))


class MulticastNodes:
    """Nodes of one switch, and groups of them. A new node gets the smallest free handle from 0 on.

    Methods raise ValueError for groups and nodes that do not exist.
    """

    def __init__(self, switch: Replication) -> None:
        self._switch = switch
        self._nodes: dict[int, Node] = {}
        self._groups: dict[int, list[int]] = {}  # group: handles of its nodes
        self._sessions: dict[int, int] = {}  # clone session: multicast group

    def create_group(self, group: int) -> None:
        """Create a group without copies; an existing group loses its copies."""
        self._groups[group] = []
        self._update(group)

    def destroy_group(self, group: int) -> None:
        self._groups.pop(group, None)
        self._switch.set_multicast_group(group, None)

    def create_node(self, instance: int, ports: Iterable[int]) -> int:
        """Create a node that belongs to no group yet; returns its handle."""
        if len(self._nodes) >= MAX_NODES:
            raise ValueError(f"there are {MAX_NODES} multicast nodes already")
        handle = next(number for number in range(MAX_NODES) if number not in self._nodes)
        self._nodes[handle] = Node(instance, tuple(ports))
        return handle

    def update_node(self, handle: int, ports: Iterable[int]) -> None:
        self._nodes[handle] = Node(self._node(handle).instance, tuple(ports))
        self._update_groups_of(handle)

    def destroy_node(self, handle: int) -> None:
        self._node(handle)
        groups = [group for group, handles in self._groups.items() if handle in handles]
        for group in groups:
            self._groups[group].remove(handle)
        del self._nodes[handle]
        for group in groups:
            self._update(group)

    def associate(self, group: int, handle: int) -> None:
        handles = self._known(group)
        self._node(handle)
        if handle not in handles:
            handles.append(handle)
        self._update(group)

    def dissociate(self, group: int, handle: int) -> None:
        if handle not in self._known(group):
            raise ValueError(f"node {handle} is not in multicast group {group}")
        self._groups[group].remove(handle)
        self._update(group)

    def mirror(self, session: int, group: int) -> None:
        """Make a clone session copy to a group, also after changes of the group."""
        self._sessions[session] = group
        if group in self._groups:
            self._update(group)
        else:
            replicas = self._switch.multicast_groups().get(group, ())
            self._switch.set_clone_session(session, CloneSession(replicas))

    def mirror_to_port(self, session: int, port: int) -> None:
        """Make a clone session copy to one port."""
        self._sessions.pop(session, None)
        self._switch.set_clone_session(session, CloneSession((Replica(port),)))

    def end_mirror(self, session: int) -> None:
        """Delete a clone session."""
        self._sessions.pop(session, None)
        self._switch.set_clone_session(session, None)

    def mirrored_group(self, session: int) -> int | None:
        return self._sessions.get(session)

    def nodes(self) -> dict[int, Node]:
        """Return the nodes by handle."""
        return dict(self._nodes)

    def groups(self) -> dict[int, tuple[int, ...]]:
        """Return the handles of each group's nodes, without groups that were made in another way."""
        return {group: tuple(handles) for group, handles in self._groups.items()}

    def _known(self, group: int) -> list[int]:
        if group not in self._groups:
            raise ValueError(f"no multicast group {group}")
        return self._groups[group]

    def _node(self, handle: int) -> Node:
        if handle not in self._nodes:
            raise ValueError(f"no multicast node {handle}")
        return self._nodes[handle]

    def _update_groups_of(self, handle: int) -> None:
        for group, handles in self._groups.items():
            if handle in handles:
                self._update(group)

    def _update(self, group: int) -> None:
        replicas = tuple(r for handle in self._groups[group] for r in self._nodes[handle].replicas())
        self._switch.set_multicast_group(group, replicas)
        for session, session_group in self._sessions.items():
            if session_group == group:
                self._switch.set_clone_session(session, CloneSession(replicas))
