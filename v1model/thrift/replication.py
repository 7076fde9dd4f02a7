"""Multicast nodes and groups, and clone sessions, in BMv2's Thrift services."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from v1model.dataplane import DataPlaneError
from v1model.thrift.binary import I32, STRING, StructOf
from v1model.thrift.calls import MIRRORING, MULTICAST, call

if TYPE_CHECKING:
    from v1model.dataplane import CloneSession, DataPlane
    from v1model.multicast_nodes import MulticastNodes

MIRRORING_SESSION = StructOf((I32, I32))


class Multicast:
    """Services simple_pre and simple_pre_lag. There are no link aggregation groups."""

    def __init__(self, switch: DataPlane, nodes: MulticastNodes) -> None:
        self._switch, self._nodes = switch, nodes

    @call(2, I32, MULTICAST)
    def bm_mc_mgrp_create(self, _context: int, group: int) -> int:
        self._nodes.create_group(group)
        return group

    @call(2, None, MULTICAST)
    def bm_mc_mgrp_destroy(self, _context: int, group: int) -> None:
        self._nodes.destroy_group(group)

    @call(4, I32, MULTICAST)
    def bm_mc_node_create(self, _context: int, instance: int, ports: bytes, lags: bytes | None) -> int:
        _refuse_lags(lags)
        return self._nodes.create_node(instance, _ports(ports))

    @call(4, None, MULTICAST)
    def bm_mc_node_update(self, _context: int, handle: int, ports: bytes, lags: bytes | None) -> None:
        _refuse_lags(lags)
        self._nodes.update_node(handle, _ports(ports))

    @call(3, None, MULTICAST)
    def bm_mc_node_associate(self, _context: int, group: int, handle: int) -> None:
        self._nodes.associate(group, handle)

    @call(3, None, MULTICAST)
    def bm_mc_node_dissociate(self, _context: int, group: int, handle: int) -> None:
        self._nodes.dissociate(group, handle)

    @call(2, None, MULTICAST)
    def bm_mc_node_destroy(self, _context: int, handle: int) -> None:
        self._nodes.destroy_node(handle)

    @call(3, None, MULTICAST)
    def bm_mc_set_lag_membership(self, _context: int, _index: int, _ports: bytes) -> None:
        raise DataPlaneError("UNIMPLEMENTED", "there are no link aggregation groups: use an action_selector")

    @call(1, STRING, MULTICAST)
    def bm_mc_get_entries(self, _context: int) -> str:
        """Return BMv2's JSON of groups and nodes.

        Groups that were made over P4Runtime have no handles and are left out.
        """
        nodes = sorted(self._nodes.nodes().items())
        found = {
            "mgrps": [
                {"id": group, "l1_handles": handles} for group, handles in self._nodes.groups().items()
            ],
            "l1_handles": [{"handle": h, "rid": node.instance, "l2_handle": h} for h, node in nodes],
            "l2_handles": [{"handle": h, "ports": sorted(node.ports), "lags": []} for h, node in nodes],
            "lags": [],
        }
        return json.dumps(found)


class Mirroring:
    """Clone sessions in the service simple_switch."""

    def __init__(self, switch: DataPlane, nodes: MulticastNodes) -> None:
        self._switch, self._nodes = switch, nodes

    @call(2, None, MIRRORING)
    def mirroring_session_add(self, session: int, config: dict[int, Any]) -> None:
        if 2 in config:
            self._nodes.mirror(session, config[2])
        else:
            self._nodes.mirror_to_port(session, config[1])

    @call(1, None, MIRRORING)
    def mirroring_session_delete(self, session: int) -> None:
        self._session(session)
        self._nodes.end_mirror(session)

    @call(1, MIRRORING_SESSION, MIRRORING)
    def mirroring_session_get(self, session: int) -> tuple[int | None, int | None]:
        config = self._session(session)
        group = self._nodes.mirrored_group(session)
        if group is not None:
            return None, group
        return (config.replicas[0].port if config.replicas else None), None

    @call(2, I32)
    def mirroring_mapping_add(self, session: int, port: int) -> int:
        self._nodes.mirror_to_port(session, port)
        return 0

    @call(1, I32)
    def mirroring_mapping_delete(self, session: int) -> int:
        self._nodes.end_mirror(session)
        return 0

    @call(1, I32)
    def mirroring_mapping_get_egress_port(self, session: int) -> int:
        config = self._switch.clone_sessions().get(session)
        return config.replicas[0].port if config and config.replicas else -1

    def _session(self, session: int) -> CloneSession:
        config = self._switch.clone_sessions().get(session)
        if config is None:
            raise DataPlaneError("NOT_FOUND", f"no clone session {session}")
        return config


def _ports(bits: bytes) -> list[int]:
    """Return the ports of a bit map in which the digit of port 0 is last."""
    return [port for port, bit in enumerate(reversed(bits.decode("ascii", "replace"))) if bit == "1"]


def _refuse_lags(lags: bytes | None) -> None:
    if lags and b"1" in lags:
        raise DataPlaneError("UNIMPLEMENTED", "there are no link aggregation groups: use an action_selector")
