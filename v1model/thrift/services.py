"""All of BMv2's Thrift services over the switch that forwards now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from v1model.multicast_nodes import MulticastNodes
from v1model.thrift.arrays import Arrays
from v1model.thrift.device import Addresses, Clock, Device, Queues
from v1model.thrift.profiles import Profiles
from v1model.thrift.replication import Mirroring, Multicast
from v1model.thrift.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from v1model.switch import Switch
    from v1model.thrift.device import SwitchProcess


class Services:
    """Finder of the methods of calls. `switch` raises DataPlaneError while no program is loaded.

    Handles of entries and nodes belong to one switch: they begin anew with another program and after a reset.
    """

    def __init__(self, switch: Callable[[], Switch], process: SwitchProcess) -> None:
        self._switch = switch
        self._device = Device(switch, process)
        self._always: dict[str, list[object]] = {
            "standard": [self._device],
            "simple_switch": [Clock(switch), Queues(process)],
            "weir": [Addresses(process)],
        }
        self._made: dict[str, list[object]] = {}
        self._made_for: Switch | None = None

    def find(self, name: str) -> Callable[..., Any] | None:
        """Return the method for `service:call`, or None if there is none."""
        service, _, method = name.rpartition(":")
        for part in (*self._always.get(service, ()), *self._of_switch(service)):
            found = getattr(part, method, None)
            if hasattr(found, "thrift"):
                if method == "bm_reset_state":
                    self._made_for = None
                return found
        return None

    def _of_switch(self, service: str) -> list[object]:
        switch = self._switch()
        if switch is not self._made_for:
            nodes = MulticastNodes(switch)
            multicast = Multicast(switch, nodes)
            self._made = {
                "standard": [Tables(switch), Profiles(switch), Arrays(switch)],
                "simple_pre": [multicast],
                "simple_pre_lag": [multicast],
                "simple_switch": [Mirroring(switch, nodes)],
            }
            self._made_for = switch
        return self._made.get(service, [])
