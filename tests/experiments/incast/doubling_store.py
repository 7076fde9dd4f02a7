"""A storage node that answers everything twice, and once more when nobody waits any longer."""

import asyncio
import sys
from collections.abc import Sequence

from hostlib.process.process import main
from hostlib.storage.storage import StorageConfig, StorageProcess
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.storage_options import StorageOptions
from hostlib.transport.endpoint import UdpEndpoint
from hostlib.transport.transport import Receiver

LATE_S = 0.4
"""Beyond the age at which a pending entry counts as stale."""


class Doubling:
    """A transport that repeats itself."""

    def __init__(self, endpoint: UdpEndpoint) -> None:
        self._endpoint = endpoint

    @property
    def queued_bytes(self) -> int:
        return self._endpoint.queued_bytes

    def set_receiver(self, receiver: Receiver) -> None:
        self._endpoint.set_receiver(receiver)

    def send(self, address: str, datagrams: Sequence[bytes]) -> None:
        for _ in range(2):
            self._endpoint.send(address, datagrams)
        asyncio.get_running_loop().call_later(LATE_S, self._endpoint.send, address, list(datagrams))


class DoublingStore(StorageProcess):
    """As a storage node, on that transport."""

    def __init__(self, config: StorageConfig) -> None:
        super().__init__(config)
        self._node = StorageNode(
            Doubling(self._endpoint), self._store, StorageOptions(link_bit_s=config.link_bit_s)
        )


if __name__ == "__main__":
    sys.exit(main(StorageConfig, DoublingStore, sys.argv[1:]))
