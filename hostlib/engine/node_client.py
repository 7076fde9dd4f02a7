"""One client a node: both ends of the protocol use the same UDP port, and an engine has several processes.

The first process at an address opens the client and serves the others on a Unix socket, whose name belongs to
the network namespace as the address does. When it ends, the next that asks for something takes its place;
what was under way is lost, as if the pool had been silent.
"""

from __future__ import annotations

import asyncio
import errno
import time
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.client.health import HealthOptions
from hostlib.engine.frames import Channel
from hostlib.engine.reach import Reach
from hostlib.engine.shared_client import BlockClient, Guest, Host
from hostlib.protocol.errors import ConfigError, TransferTimeoutError
from hostlib.protocol.members import Members
from hostlib.protocol.wire import KV_PORT
from hostlib.transport.endpoint import UdpEndpoint

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from hostlib.engine.config import PoolConfig
    from hostlib.protocol.hints import Hint, HintOutcome
    from hostlib.protocol.seal import Seal
    from hostlib.protocol.transfer import BlockRef, FetchedBlock
    from hostlib.protocol.wire import Buffer

Result = TypeVar("Result")

ATTEMPTS = 200
PAUSE_S = 0.01
"""Seconds between attempts while another process is about to serve or about to go."""
ENTER_S = 10.0
"""Seconds to wait for the greeting of the process that has the client. An engine that starts may keep it from
the CPU."""


class NodeClient:
    """A `BlockClient` of this node: its own, or another process's."""

    def __init__(self, config: PoolConfig, seal: Seal) -> None:
        self._config, self._seal = config, seal
        self._path = f"\0weir {config.address} {KV_PORT}"
        self._opening = asyncio.Lock()
        self._reach = Reach(config.retry_s)
        """Of the process that has the client."""
        self._client: BlockClient | None = None
        self._endpoint: UdpEndpoint | None = None
        self._host: Host | None = None
        self._server: asyncio.Server | None = None

    @property
    def is_host(self) -> bool:
        """Return whether this process has the client that the node's others use."""
        return self._host is not None

    @property
    def suspects(self) -> list[str]:
        """Addresses of storage nodes that do not answer: all, if the process with the client does not."""
        if not self._reach.allows(time.monotonic()):
            return list(self._config.homes)
        return self._client.suspects if self._client is not None else []

    @property
    def is_answering(self) -> bool:
        """Return whether any storage node answers, as far as this process knows."""
        if not self._reach.allows(time.monotonic()):
            return False
        return self._client is None or self._client.is_answering

    def endpoint_report(self) -> dict[str, int]:
        """Return the counters of the socket; none if another process has it."""
        return self._endpoint.stats.report() if self._endpoint is not None else {}

    async def open(self) -> BlockClient:
        """Return the open client. Raises ConfigError if another process has it with other settings, or the
        address is in use by something else."""
        async with self._opening:
            if not self._is_open():
                self._client = await self._opened()
            assert self._client is not None
            return self._client

    async def get(self, block: BlockRef) -> FetchedBlock:
        """Get a block as `Client.get` does."""
        return await self._with_client(block, lambda client: client.get(block))

    async def get_into(self, block: BlockRef, buffer: memoryview) -> FetchedBlock:
        """Do what `Client.get_into` does."""
        return await self._with_client(block, lambda client: client.get_into(block, buffer))

    async def put(
        self, block: BlockRef, content: Buffer, *, replicas: int = 1, at_least: int | None = None
    ) -> None:
        """Do what `Client.put` does."""
        await self._with_client(
            block, lambda client: client.put(block, content, replicas=replicas, at_least=at_least)
        )

    async def present(self, blocks: Sequence[BlockRef], within_s: float) -> list[bool | None]:
        """Do what `Client.present` does."""
        if not blocks:
            return []
        return await self._with_client(blocks[0], lambda client: client.present(blocks, within_s))

    async def delete(self, block: BlockRef) -> bool:
        """Do what `Client.delete` does."""
        return await self._with_client(block, lambda client: client.delete(block))

    async def hint(self, block: BlockRef, hint: Hint, seconds: int = 0) -> HintOutcome:
        """Hint as `Client.hint` does, but raise TransferTimeoutError for a pool that can't be reached."""
        return await self._with_client(block, lambda client: client.hint(block, hint, seconds))

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

    async def _with_client(self, block: BlockRef, ask: Callable[[BlockClient], Awaitable[Result]]) -> Result:
        """Return what the client answers. Once it was open, any failure counts as a pool that does not
        answer.

        If another process has the client and says nothing for `silence_s` to a caller that then gives up, it
        is left alone for a while.
        """
        began_s = time.monotonic()
        if self._host is None and not self._reach.allows(began_s):
            raise TransferTimeoutError(block.key, self._silent())
        try:
            return await ask(self._client if self._is_open() and self._client else await self.open())
        except (ConfigError, OSError) as error:
            self._reach.failed(time.monotonic())
            raise TransferTimeoutError(block.key, str(error)) from None
        except asyncio.CancelledError:
            now_s = time.monotonic()
            if now_s - began_s >= self._config.silence_s and not self._heard_since(began_s):
                self._reach.failed(now_s)
            raise

    def _heard_since(self, began_s: float) -> bool:
        """Return whether this process has the client, or the one that has it was heard since `began_s`."""
        return self._host is not None or (isinstance(self._client, Guest) and self._client.heard_s >= began_s)

    async def _opened(self) -> BlockClient:
        for _ in range(ATTEMPTS):
            client = await self._serve() or await self._enter()
            if client is not None:
                return client
            await asyncio.sleep(PAUSE_S)
        raise ConfigError(self._silent())

    async def _serve(self) -> BlockClient | None:
        """Become the process that has the client; return None where there is one."""
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
        health = HealthOptions(
            silence_s=config.silence_s,
            probe_s=min(HealthOptions().probe_s, config.retry_s),
            max_probe_s=config.retry_s,
        )
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
        guest = Guest(channel, self._reach.answered)
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
        """Return what processes of a node have to agree in; the secret by a digest of it."""
        config = self._config
        return {
            "homes": list(config.homes),
            "replicas": config.replicas,
            "controller": config.controller,
            "tenant": config.tenant,
            "secret": blake2b(config.secret_bytes(), digest_size=8).hexdigest(),
        }
