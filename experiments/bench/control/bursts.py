"""The storage node of the measurement: values of blocks that nobody has heard of, in bursts.

    python -m experiments.bench.control.bursts INTERFACE SEED BLOCKS BURST BURSTS_PER_S

Only a block's first fragment counts for the switch's sketch, so each block is one frame and one digest.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator
from hashlib import blake2b

from experiments.bench.switch.workloads import FRAGMENTS, STORE, kv_frame, value_of
from hostlib.protocol import wire


def frames(seed: int, blocks: int) -> Iterator[bytes]:
    """Yield a VALUE for node 0 of each of so many blocks."""
    value = value_of(0, 0)
    for block in range(blocks):
        key = blake2b(b"%d %d" % (seed, block), digest_size=wire.KEY_BYTES).digest()
        yield kv_frame(STORE, 0, wire.Message(wire.OP_VALUE, key, 0, FRAGMENTS, value=value))


def main(interface: str, seed: int, blocks: int, burst: int, bursts_per_s: float) -> None:
    """Send them all; a burst that is late makes no other late."""
    made = list(frames(seed, blocks))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as link:
        link.bind((interface, 0))
        start_s = time.monotonic()
        for number, first in enumerate(range(0, blocks, burst)):
            time.sleep(max(0.0, start_s + number / bursts_per_s - time.monotonic()))
            for frame in made[first : first + burst]:
                link.send(frame)


if __name__ == "__main__":
    _, link_name, *numbers, rate = sys.argv
    main(link_name, *map(int, numbers), float(rate))  # type: ignore[call-arg]  # three, says the usage
