"""Whether the interface that a host sends by carries frames as long as its values need."""

from __future__ import annotations

import fcntl
import socket
import struct
from typing import Final

from hostlib.protocol.errors import ConfigError
from hostlib.protocol.wire import VALUE_BYTES, VALUE_PACKET_BYTES

_SIOCGIFADDR: Final = 0x8915
_SIOCGIFMTU: Final = 0x8921
_REQUEST = struct.Struct("16s24s")
"""struct ifreq of netdevice(7): a name, and what is asked for."""
_ADDRESS_AT: Final = 20
_MTU = struct.Struct("=i")


def check_mtu(sock: socket.socket, address: str) -> None:
    """Raise ConfigError with the interface's name if `address` is one of an interface whose packets are
    shorter than a message with a value. An address that no interface has as its first is not checked."""
    for _, name in socket.if_nameindex():
        try:
            said = fcntl.ioctl(sock, _SIOCGIFADDR, _REQUEST.pack(name.encode(), b""))
            if said[_ADDRESS_AT : _ADDRESS_AT + 4] != socket.inet_aton(address):
                continue
            said = fcntl.ioctl(sock, _SIOCGIFMTU, _REQUEST.pack(name.encode(), b""))
        except OSError:
            continue  # without an IPv4 address, or gone by now
        (mtu_bytes,) = _MTU.unpack_from(said, 16)
        if mtu_bytes < VALUE_PACKET_BYTES:
            raise ConfigError(
                f"{name} ({address}) has an MTU of {mtu_bytes} bytes; values of {VALUE_BYTES} bytes need "
                f"{VALUE_PACKET_BYTES}: ip link set dev {name} mtu {VALUE_PACKET_BYTES}, or smaller values"
            )
        return
