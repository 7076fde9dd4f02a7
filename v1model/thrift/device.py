"""The switch as a whole in BMv2's Thrift services: programs, ports, hashes, time, queues."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from v1model.dataplane import CustomCrc, DataPlaneError
from v1model.p4info.bmv2_description import describe
from v1model.thrift.binary import BOOL, I32, I64, STRING, ListOf, MapOfStrings, StructOf
from v1model.thrift.calls import CRC, IDS, PORTS, SWAP, call

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from v1model.switch import Switch

PORT_INFO = StructOf((I32, STRING, BOOL, MapOfStrings()))
CONFIG = StructOf((I64, I32, STRING, STRING, STRING))
BITS_OF_CRC16, BITS_OF_CRC32 = 16, 32
DEPTH, RATE = "depth_packets", "packets_per_s"
OK = 0


class SwitchProcess(Protocol):
    """Functions of the process around a switch."""

    device_id: int
    thrift_port: int  # 0: none
    p4runtime_address: str

    def config(self) -> bytes:
        """Return the device config that the switch runs, or that waits to be swapped in."""

    def load(self, config: bytes) -> None:
        """Check a device config and store it until `swap`."""

    def swap(self) -> None:
        """Run the device config that was loaded; raises FAILED_PRECONDITION if there is none."""

    def reset(self) -> None:
        """Restore the state after loading the program."""

    def limit_queues(self, limits: Mapping[str, int], port: int | None, priority: int | None) -> None: ...
    def add_port(self, port: int, interface: str) -> None: ...
    def remove_port(self, port: int) -> None: ...


@dataclass(frozen=True)
class Device:
    """Calls about the device in the service standard. `switch` returns the one that forwards now."""

    switch: Callable[[], Switch]
    process: SwitchProcess

    @call(0, STRING)
    def bm_get_config(self) -> str:
        """Return the device config, with the parts of p4c's JSON that tools for BMv2 read."""
        switch = self.switch()
        described = describe(switch.program, switch.compiled.custom_crcs)
        return json.dumps({**described, **json.loads(self.process.config())})

    @call(0, STRING)
    def bm_get_config_md5(self) -> bytes:
        return hashlib.md5(self.process.config(), usedforsecurity=False).digest()

    @call(1, None, SWAP)
    def bm_load_new_config(self, config: bytes) -> None:
        self.process.load(config)

    @call(0, None, SWAP)
    def bm_swap_configs(self) -> None:
        self.process.swap()

    @call(0)
    def bm_reset_state(self) -> None:
        self.process.reset()

    @call(0, CONFIG)
    def bm_mgmt_get_info(self) -> tuple[int, int, None, None, None]:
        return self.process.device_id, self.process.thrift_port, None, None, None

    @call(0, STRING)
    def bm_serialize_state(self) -> str:
        raise DataPlaneError("UNIMPLEMENTED", "state is read and written over P4Runtime")

    @call(3, None, PORTS)
    def bm_dev_mgr_add_port(self, interface: bytes, port: int, _pcap: bytes | None) -> None:
        self.process.add_port(port, interface.decode(errors="replace"))

    @call(1, None, PORTS)
    def bm_dev_mgr_remove_port(self, port: int) -> None:
        self.process.remove_port(port)

    @call(0, ListOf(PORT_INFO), PORTS)
    def bm_dev_mgr_show_ports(self) -> list[tuple[int, str, bool, dict[str, str]]]:
        """Return the interfaces, with their packet and drop counts as `extra`."""
        ports = sorted(self.switch().statistics()["ports"].items())
        return [
            (
                number,
                port["interface"],
                not port["error"],
                {name: str(count) for name, count in port.items() if name.endswith(("packets", "drops"))},
            )
            for number, port in ports
        ]

    @call(3, None, CRC)
    def bm_set_crc16_custom_parameters(self, _context: int, name: bytes, config: Any) -> None:
        self._set_crc(BITS_OF_CRC16, name, config)

    @call(3, None, CRC)
    def bm_set_crc32_custom_parameters(self, _context: int, name: bytes, config: Any) -> None:
        self._set_crc(BITS_OF_CRC32, name, config)

    def _set_crc(self, bits: int, name: bytes, config: dict[int, Any]) -> None:
        switch, wanted = self.switch(), name.decode(errors="replace")
        calculations = describe(switch.program, switch.compiled.custom_crcs)["calculations"]
        for calculation in calculations:
            if calculation["name"] == wanted:
                break
        else:
            raise DataPlaneError("NOT_FOUND", f"no calculation {wanted}")
        if switch.compiled.custom_crcs[calculation["id"]] != bits:
            raise DataPlaneError("INVALID_ARGUMENT", f"{wanted} is {calculation['algo']}")
        polynomial, initial, final_xor = (config[i] & (1 << bits) - 1 for i in (1, 2, 3))
        crc = CustomCrc(polynomial, initial, final_xor, bool(config[4]), bool(config[5]))
        switch.set_custom_crc(calculation["id"], crc)

    @call(3, I32, IDS)
    def bm_get_id_from_name(self, _context: int, kind: int, name: bytes) -> int:
        switch = self.switch()
        described, wanted = describe(switch.program), name.decode(errors="replace")
        tables = [table for pipeline in described["pipelines"] for table in pipeline["tables"]]
        profiles = [one for pipeline in described["pipelines"] for one in pipeline["action_profiles"]]
        lists = (
            tables,
            profiles,
            described["counter_arrays"],
            described["meter_arrays"],
            described["register_arrays"],
            described["learn_lists"],
        )
        if not 0 <= kind < len(lists):
            raise DataPlaneError("INVALID_ARGUMENT", f"no kind of resource {kind}")
        for one in lists[kind]:
            if one["name"] == wanted:
                return int(one["id"])
        raise DataPlaneError("NOT_FOUND", f"nothing is called {wanted}")


@dataclass(frozen=True)
class Addresses:
    """Service weir, which BMv2 does not have: weir-cli finds a switch by its Thrift port."""

    process: SwitchProcess

    @call(0, StructOf((I64, STRING)))
    def p4runtime_device(self) -> tuple[int, str]:
        """Return the device id and the address."""
        return self.process.device_id, self.process.p4runtime_address


@dataclass(frozen=True)
class Clock:
    """Time in the service simple_switch."""

    switch: Callable[[], Switch]

    @call(0, I64)
    def get_time_elapsed_us(self) -> int:
        return int(self.switch().handle.call("now_us"))

    @call(0, I64)
    def get_time_since_epoch_us(self) -> int:
        return time.time_ns() // 1000


@dataclass(frozen=True)
class Queues:
    """Queues in the service simple_switch: depths in packets, rates in packets per second."""

    process: SwitchProcess

    @call(2, I32)
    def set_egress_queue_depth(self, port: int, packets: int) -> int:
        return self._limit(DEPTH, packets, port)

    @call(3, I32)
    def set_egress_priority_queue_depth(self, port: int, priority: int, packets: int) -> int:
        return self._limit(DEPTH, packets, port, priority)

    @call(1, I32)
    def set_all_egress_queue_depths(self, packets: int) -> int:
        return self._limit(DEPTH, packets)

    @call(2, I32)
    def set_egress_queue_rate(self, port: int, packets_per_s: int) -> int:
        return self._limit(RATE, packets_per_s, port)

    @call(3, I32)
    def set_egress_priority_queue_rate(self, port: int, priority: int, packets_per_s: int) -> int:
        return self._limit(RATE, packets_per_s, port, priority)

    @call(1, I32)
    def set_all_egress_queue_rates(self, packets_per_s: int) -> int:
        return self._limit(RATE, packets_per_s)

    def _limit(self, name: str, value: int, port: int | None = None, priority: int | None = None) -> int:
        self.process.limit_queues({name: value}, port, priority)
        return OK
