"""Sender and receiver that measure how soon entries follow their digests.

    python -m experiments.validate.control.entries NODE_INTERFACE STORE_INTERFACE ROUNDS DIGESTS [DIGESTS ...]

After a pause, values of DIGESTS unknown blocks pass at once, so that their list leaves after its shortest
wait. Then another fragment of the first and of the last block is asked for and answered again and again. Once
the switch serves it, the block has its entry. Only a block's first fragment counts for the sketch, so that
these requests cause no digests. Each look sends a request, its answer, which fills the block if it has an
entry, and the same request again: an entry is seen at most one look late. The first round does not count. For
each of the others a line of JSON is printed: digests, and the seconds from the first value to both entries.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from hashlib import blake2b

from controller.p4runtime.base_state import DIGEST_TIMEOUT_NS
from experiments.bench.switch.workloads import FRAGMENTS, STORE, kv_frame, value_of
from hostlib.protocol import wire
from v1model.binding.digests import EAGER

POLL_S = 0.00015
"""Seconds between two looks."""
PAUSE_S = 2.5 * DIGEST_TIMEOUT_NS / 1e9
LONGEST_S = 0.1
"""Seconds after which an entry counts as not made."""
_CONTENT = 1
_FRAGMENT = 1
_KEY_AT = wire.FRAME_HEADER_BYTES + 48
_FLAGS_AT = wire.FRAME_HEADER_BYTES + 2


def main(node: str, store: str, rounds: int, sizes: list[int]) -> None:
    """Measure each size in turn, round after round."""
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as node_socket,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as store_socket,
    ):
        node_socket.bind((node, 0))
        node_socket.setblocking(False)
        store_socket.bind((store, 0))
        time.sleep(PAUSE_S)
        _round(
            node_socket, store_socket, [_key(rounds, 1, 0)]
        )  # a controller's first decisions load their code
        for number in range(rounds):
            for digests in sizes:
                time.sleep(PAUSE_S)
                keys = [_key(number, digests, block) for block in range(digests)]
                print(json.dumps([digests, *_round(node_socket, store_socket, keys)]), flush=True)


def _key(number: int, digests: int, block: int) -> bytes:
    seed = b"entries %d %d %d" % (number, digests, block)
    return blake2b(seed, digest_size=wire.KEY_BYTES).digest()


def _round(node_socket: socket.socket, store_socket: socket.socket, keys: list[bytes]) -> list[float | None]:
    """Return the seconds from the first value to the entries of the first and of the last block.

    An entry that did not come is None.
    """
    values = [_value(key, 0) for key in keys]
    looked = {key: (_get(key), _value(key, _FRAGMENT)) for key in (keys[0], keys[-1])}
    had_s: dict[bytes, float] = {}
    began_s = time.monotonic()
    for value in values:
        store_socket.send(value)
    time.sleep(max(0.0, DIGEST_TIMEOUT_NS / 1e9 / EAGER - (time.monotonic() - began_s)))
    while len(had_s) < len(looked) and time.monotonic() < began_s + LONGEST_S:
        for key, (get, value) in looked.items():
            if key not in had_s:
                node_socket.send(get)
                store_socket.send(value)
                node_socket.send(get)
        time.sleep(POLL_S)
        for key in _served(node_socket):
            had_s.setdefault(key, time.monotonic() - began_s)
    return [had_s.get(key) for key in (keys[0], keys[-1])]


def _served(node_socket: socket.socket) -> list[bytes]:
    """Return the keys of the received values that came from the pool."""
    keys: list[bytes] = []
    while True:
        try:
            frame = node_socket.recv(2048)
        except BlockingIOError:
            return keys
        flags = int.from_bytes(frame[_FLAGS_AT : _FLAGS_AT + 2], "big")
        if len(frame) == wire.VALUE_FRAME_BYTES and flags & wire.FLAG_FROM_POOL:
            keys.append(frame[_KEY_AT : _KEY_AT + wire.KEY_BYTES])


def _get(key: bytes) -> bytes:
    return kv_frame(0, STORE, wire.Message(wire.OP_GET, key, _FRAGMENT, FRAGMENTS))


def _value(key: bytes, fragment: int) -> bytes:
    value = value_of(0, fragment)
    return kv_frame(
        STORE, 0, wire.Message(wire.OP_VALUE, key, fragment, FRAGMENTS, content=_CONTENT, value=value)
    )


if __name__ == "__main__":
    _, node_end, store_end, *numbers = sys.argv
    main(node_end, store_end, int(numbers[0]), [int(number) for number in numbers[1:]])
