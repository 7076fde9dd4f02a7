"""An inference node reduced to its questions: `get KEY FLAGS` and `put KEY` on stdin, a JSON line each back.

    python -m tests.controller.asking_node ADDRESS HOME FRAGMENTS

Content is not what hosts emulate, so that a store can't derive what it did not receive.
"""

from __future__ import annotations

import json
import socket
import sys
from hashlib import shake_256

from hostlib.protocol import wire

TRY_S, TRIES = 1.0, 60


class AskingNode:
    """Asks one fragment at a time, again and again until there is an answer."""

    def __init__(self, address: str, home: str, fragments: int) -> None:
        self._fragments = fragments
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, wire.KV_PORT))
        self._socket.connect((home, wire.KV_PORT))
        self._socket.settimeout(TRY_S)

    def get(self, key: bytes, flags: int) -> dict[str, object]:
        """Whether the block could be had, was right, and how many fragments of it came from the pool."""
        content, from_pool = b"", 0
        for fragment in range(self._fragments):
            reply = self._ask(wire.Message(wire.OP_GET, key, fragment, self._fragments, flags), wire.OP_VALUE)
            if reply.op == wire.OP_NOT_FOUND:
                return {"event": "answer", "found": False, "right": False, "from_pool": from_pool}
            content += bytes(reply.value)
            from_pool += bool(reply.flags & wire.FLAG_FROM_POOL)
        right = content == self._content(key)
        return {"event": "answer", "found": True, "right": right, "from_pool": from_pool}

    def put(self, key: bytes) -> dict[str, object]:
        """Give the block to its home."""
        content = self._content(key)
        for fragment in range(self._fragments):
            at = fragment * wire.VALUE_BYTES
            value = content[at : at + wire.VALUE_BYTES]
            put = wire.Message(wire.OP_PUT, key, fragment, self._fragments, content=1, value=value)
            self._ask(put, wire.OP_PUT_ACK)
        return {"event": "answer"}

    def _content(self, key: bytes) -> bytes:
        return shake_256(key).digest(self._fragments * wire.VALUE_BYTES)

    def _ask(self, message: wire.Message, answer: int) -> wire.Message:
        for attempt in range(TRIES):
            retry = wire.FLAG_RETRY if attempt and message.op == wire.OP_GET else 0
            self._socket.send(wire.encode(message._replace(flags=message.flags | retry)))
            try:
                while True:
                    reply = wire.decode(self._socket.recv(2048))
                    if reply.op in (answer, wire.OP_NOT_FOUND) and reply[1:3] == message[1:3]:
                        return reply
            except TimeoutError:
                pass
        raise TimeoutError(f"no answer to {message[:3]}")


def main(address: str, home: str, fragments: str) -> None:
    """Obey until the end of stdin."""
    node = AskingNode(address, home, int(fragments))
    print(json.dumps({"event": "ready"}), flush=True)
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "stop":
            break
        if command == "start":
            continue
        key = bytes.fromhex(arguments[0])
        answer = node.get(key, int(arguments[1])) if command == "get" else node.put(key)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
