"""One client a node: both ends of the protocol use the same UDP port, and an engine has several processes.

The first process at an address opens the client and serves the others on a Unix socket, whose name belongs to
the network namespace as the address does. When it ends, the next that asks for something takes its place;
what was under way is lost, as if the pool had been silent.
"""

from __future__ import annotations

import asyncio
import errno
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from hostlib.client import Client
from hostlib.client_options import ClientOptions
from hostlib.endpoint import UdpEndpoint
from hostlib.engine.frames import Channel
from hostlib.engine.shared_client import BlockClient, Guest, Host
from hostlib.errors import ConfigError, TransferTimeoutError
from hostlib.health import HealthOptions
from hostlib.members import Members
from hostlib.wire import KV_PORT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlib.engine.config import PoolConfig
    from hostlib.seal import Seal
    from hostlib.transfer import BlockRef, FetchedBlock
    from hostlib.wire import Buffer

ATTEMPTS = 200
PAUSE_S = 0.01
"""Between attempts, while another process is about to serve or about to go."""
ENTER_S = 10.0
"""For the greeting of the process that has the client: an engine that starts may keep it from the CPU."""


class NodeClient:
    """A `BlockClient` of this node: its own, or another process's."""

    def __init__(self, config: PoolConfig, seal: Seal) -> None:
        self._config, self._seal = config, seal
        self._path = f"\0weir {config.address} {KV_PORT}"
        self._opening = asyncio.Lock()
        self._client: BlockClient | None = None
        self._endpoint: UdpEndpoint | None = None
        self._host: Host | None = None
        self._server: asyncio.Server | None = None

    @property
    def is_host(self) -> bool:
        """Whether this process has the client that the node's others use."""
        return self._host is not None

    @property
    def suspects(self) -> list[str]:
        """Addresses of storage nodes that do not answer, as far as this process has been told."""
        return self._client.suspects if self._client is not None else []

    @property
    def is_answering(self) -> bool:
        """Whether any storage node answers, as far as this process has been told."""
        return self._client is None or self._client.is_answering

    def endpoint_report(self) -> dict[str, int]:
        """Counters of the socket; nothing where another process has it."""
        return self._endpoint.stats.report() if self._endpoint is not None else {}

    async def open(self) -> BlockClient:
        """The client, open. ConfigError if another process has it with other settings, or the address is in
        use by something else."""
        async with self._opening:
            if not self._is_open():
                self._client = await self._opened()
            assert self._client is not None
            return self._client

    async def get(self, block: BlockRef) -> FetchedBlock:
        """As `Client.get`."""
        return await (await self._current(block)).get(block)

    async def get_into(self, block: BlockRef, buffer: memoryview) -> FetchedBlock:
        """As `Client.get_into`."""
        return await (await self._current(block)).get_into(block, buffer)

    async def put(
        self, block: BlockRef, content: Buffer, *, replicas: int = 1, at_least: int | None = None
    ) -> None:
        """As `Client.put`."""
        client = await self._current(block)
        await client.put(block, content, replicas=replicas, at_least=at_least)

    async def present(self, blocks: Sequence[BlockRef], within_s: float) -> list[bool | None]:
        """As `Client.present`."""
        return await (await self._current(blocks[0])).present(blocks, within_s) if blocks else []

    def close(self) -> None:
        """Give up all transfers; another process may take over."""
        if self._client is not None:
            self._client.close()
        if self._endpoint is not None:
            self._endpoint.close()  # before the name, so that whoever takes the name finds the port free
        if self._host is not None:
            self._host.close()
        if self._server is not None:
            self._server.close()

    def _is_open(self) -> bool:
        return self._client is not None and not (isinstance(self._client, Guest) and self._client.is_over)

    async def _current(self, block: BlockRef) -> BlockClient:
        """Once it was open, whatever prevents it is a pool that does not answer."""
        if self._is_open():
            assert self._client is not None
            return self._client
        try:
            return await self.open()
        except (ConfigError, OSError) as error:
            raise TransferTimeoutError(block.key, str(error)) from None

    async def _opened(self) -> BlockClient:
        for _ in range(ATTEMPTS):
            client = await self._serve() or await self._enter()
            if client is not None:
                return client
            await asyncio.sleep(PAUSE_S)
        raise ConfigError(self._silent())

    async def _serve(self) -> BlockClient | None:
        """Become the process that has the client; None where there is one."""
        config = self._config
        try:
            server = await asyncio.start_unix_server(self._on_guest, self._path, start_serving=False)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return None
            raise
        try:
            self._endpoint = UdpEndpoint(config.address)
        except BaseException:
            server.close()
            raise
        members = Members.of(config.homes, config.replicas)
        health = HealthOptions(silence_s=config.silence_s)
        options = ClientOptions(health=health, controller=config.controller)
        client = Client(self._endpoint, members, self._seal, options)
        self._host, self._server = Host(client, self._settings()), server
        await server.start_serving()
        return client

    async def _on_guest(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._host is not None
        await self._host.serve(reader, writer)

    async def _enter(self) -> BlockClient | None:
        """Use another process's client; None if it has just gone."""
        try:
            channel = Channel(*await asyncio.open_unix_connection(self._path))
        except OSError:
            return None
        guest = Guest(channel)
        try:
            async with asyncio.timeout(ENTER_S):
                await guest.enter(self._settings())
        except EOFError:
            guest.close()
            return None
        except TimeoutError:
            guest.close()
            raise ConfigError(self._silent()) from None
        except BaseException:
            guest.close()
            raise
        return guest

    def _silent(self) -> str:
        return f"the process that has the pool open at {self._config.address} does not answer"

    def _settings(self) -> dict[str, Any]:
        """What processes of a node have to agree in; the secret by a digest of it."""
        config = self._config
        return {
            "homes": list(config.homes),
            "replicas": config.replicas,
            "controller": config.controller,
            "tenant": config.tenant,
            "secret": blake2b(config.secret_bytes(), digest_size=8).hexdigest(),
        }
