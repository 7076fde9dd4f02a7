"""Commands of simple_switch_CLI about the switch as a whole: its program, ports, hashes and time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from v1model.frontend import load_text
from v1model.midend import lower
from v1model.p4info import p4info
from v1model.p4runtime.device_config import DeviceConfig
from v1model.protos.p4.v1 import p4runtime_pb2
from v1model.remote.ports import show_ports
from v1model.stf.parser import parse_number
from v1model.thrift.binary import BOOL, I16, I32, STRING, StructOf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from v1model.remote.data_plane import RemoteDataPlane
    from v1model.remote.own_calls import OwnCalls
    from v1model.remote.session import Session

_Action = p4runtime_pb2.SetForwardingPipelineConfigRequest
CRC16 = StructOf((I16, I16, I16, BOOL, BOOL))
CRC32 = StructOf((I32, I32, I32, BOOL, BOOL))
CRC16_BITS = 16
_CONTEXT = (I32, 0)
# Commands without a counterpart, with the reason or an alternative.
REFUSED = {
    "port_add": "start weir-switch with -i PORT@INTERFACE, or add it by Thrift (--thrift-port)",
    "port_remove": "take the interface down, or remove it by Thrift (--thrift-port)",
    "serialize_state": "read the state over P4Runtime",
    "set_toeplitz_hash_key": "there is no such hash",
    "mc_set_lag_membership": "there are no link aggregation groups: use an action_selector",
    "table_indirect_set_default": "P4Runtime sets none: give the table a default_action",
    "table_indirect_set_default_with_group": "P4Runtime sets none: give the table a default_action",
    "shell": "use the shell itself",
}


class DeviceCommands:
    """Commands about the switch; `reload` is called when the program has changed."""

    def __init__(
        self,
        session: Session,
        data_plane: RemoteDataPlane,
        calls: OwnCalls,
        say: Callable[[str], None],
        reload: Callable[[], None],
    ) -> None:
        self._session, self._data_plane, self._calls = session, data_plane, calls
        self._say, self._reload = say, reload
        self.commands: dict[str, Callable[[Sequence[str]], None]] = {
            "show_ports": self._show_ports,
            "show_actions": self._show_actions,
            "switch_info": self._info,
            "load_new_config_file": self._load,
            "swap_configs": self._swap,
            "reset_state": self._reset,
            "write_config_to_file": self._write,
            "set_crc16_parameters": lambda words: self._set_crc(16, words),
            "set_crc32_parameters": lambda words: self._set_crc(32, words),
            "get_time_elapsed": lambda _: self._time("get_time_elapsed_us"),
            "get_time_since_epoch": lambda _: self._time("get_time_since_epoch_us"),
        }

    def _show_ports(self, _: Sequence[str]) -> None:
        for line in show_ports(self._data_plane.statistics()):
            self._say(line)

    def _show_actions(self, _: Sequence[str]) -> None:
        for action in self._data_plane.program.actions:
            given = ", ".join(f"{param.name}({param.type.width})" for param in action.params)
            self._say(f"{action.name:30} [{given}]")

    def _info(self, _: Sequence[str]) -> None:
        info = self._calls("standard:bm_mgmt_get_info")
        self._say(f"device_id: {info[1]}")
        self._say(f"thrift_port: {info[2] or 'none'}")
        self._say(f"program: {self._data_plane.program.name}")

    def _load(self, words: Sequence[str]) -> None:
        """Run load_new_config_file FILE: load a device config, which swap_configs puts into use."""
        data = Path(words[0]).read_bytes()
        sent = DeviceConfig.decode(data)
        program = lower(load_text(sent.source, sent.name), sent.name, has_custom_externs=True)
        config = p4runtime_pb2.ForwardingPipelineConfig(p4info=p4info(program), p4_device_config=data)
        self._session.set_pipeline(_Action.VERIFY_AND_SAVE, config)

    def _swap(self, _: Sequence[str]) -> None:
        self._session.set_pipeline(_Action.COMMIT, None)
        self._reload()

    def _reset(self, _: Sequence[str]) -> None:
        """Run reset_state: reset entries, counters, registers and groups to those after loading."""
        self._calls("standard:bm_reset_state")
        self._reload()

    def _write(self, words: Sequence[str]) -> None:
        Path(words[0]).write_bytes(self._session.pipeline().p4_device_config)

    def _set_crc(self, bits: int, words: Sequence[str]) -> None:
        """Run set_crcN_parameters CALCULATION POLYNOMIAL INITIAL FINAL_XOR REFLECT_DATA REFLECT_REMAINDER."""
        numbers = [_signed(parse_number(word), bits) for word in words[1:4]]
        flags = [_flag(word) for word in words[4:6]]
        kind = (CRC16 if bits == CRC16_BITS else CRC32, (*numbers, *flags))
        self._calls(f"standard:bm_set_crc{bits}_custom_parameters", _CONTEXT, (STRING, words[0]), kind)

    def _time(self, name: str) -> None:
        self._say(str(self._calls(f"simple_switch:{name}")))


def _signed(value: int, bits: int) -> int:
    """Return a number of `bits` bits as one of Thrift's signed numbers."""
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{value:#x} has more than {bits} bits")
    return value - (1 << bits) if value >> bits - 1 else value


def _flag(word: str) -> bool:
    if word.lower() not in ("true", "false", "0", "1"):
        raise ValueError(f"{word} is neither true nor false")
    return word.lower() in ("true", "1")
