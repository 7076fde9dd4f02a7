"""P4Runtime session that sets a switch up as the controller does, and times what the switch does."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any, Final

import grpc

from controller.addressing import Mac
from controller.block_id import block_id, tenant_of
from controller.block_id import key_of as wire_key_of
from controller.config import Host, Limits, PoolSize, Port, Route, SwitchConfig
from controller.costs import Costs
from controller.errors import ControllerError
from controller.operations import Install, Result, SetThreshold
from controller.p4_constants import BLOCKS
from controller.p4runtime.base_state import sync_base_state
from controller.p4runtime.p4info import Program, load_p4info
from controller.p4runtime.p4runtime_adapter import P4RuntimeAdapter
from controller.p4runtime.p4runtime_client import RPC_TIMEOUT_S, UPDATES_PER_WRITE, SwitchClient
from experiments.bench.switch.errors import BenchError
from experiments.bench.switch.workloads import CABLES, STORE, ipv4, key_of, mac
from hostlib.protocol import wire
from topologies.engines import Artifacts
from v1model.protos.p4.v1 import p4runtime_pb2

DEVICE_ID: Final = 1
Update = p4runtime_pb2.Update
FILLS: Final = "ingress.pool.fills"
_CONTROLLER: Final = Host(Mac.parse("02:00:00:00:00:ff"), IPv4Address("10.255.0.1"))
_START_TIMEOUT_S: Final = 60.0
_GENERATION: Final = 1
_WRITE_RUNS: Final = 5
_LIMITS: Final = Limits(10**9, 10**9, 10**9)
"""Limits of the meters, so high that packets are metered but never dropped."""


class Control:
    """One P4Runtime session with a switch under load."""

    def __init__(self, client: SwitchClient) -> None:
        self._client = client

    def set_pipeline(self, artifacts: Artifacts) -> float:
        """Install the program; returns the seconds that it took."""
        self._program = Program(load_p4info(artifacts.p4info))
        self._adapter = P4RuntimeAdapter(self._program, _CONTROLLER, Costs())
        self._adapter.session_client = self._client
        start = time.monotonic()
        self._client.set_pipeline(self._program.p4info, artifacts.device_config.read_bytes(), cookie=1)
        return time.monotonic() - start

    def install_base_state(self) -> None:
        """Install roles, routes, hosts and the groups of waiters; no digests, which nobody would read."""
        sync_base_state(self._client, self._program, switch_config(PoolSize(1, 1, 1)), merging=True)
        self._check(self._adapter.write([SetThreshold(0)]))

    def install_blocks(self, blocks: int, fragments: int) -> None:
        """Insert the entries of blocks 0, 1, ...: each gets `fragments` slots."""
        self._check(self._adapter.write(_installs(blocks, fragments)))

    def writes_per_s(self, blocks: int, fragments: int) -> float:
        """Return how many entries are deleted and inserted a second, in the controller's batches.

        In the end all entries are there. The requests are encoded beforehand, so that only the switch and
        gRPC are measured.
        """
        entries = [self._entry(install) for install in _installs(blocks, fragments)]
        requests = [*self._requests(Update.DELETE, entries), *self._requests(Update.INSERT, entries)]
        start = time.monotonic()
        for _ in range(_WRITE_RUNS):
            for request in requests:
                self._client.stub.Write(request, timeout=RPC_TIMEOUT_S)
        return 2 * _WRITE_RUNS * blocks / (time.monotonic() - start)

    def _entry(self, install: Install) -> p4runtime_pb2.TableEntry:
        match = {"tenant": tenant_of(install.key), "key": int.from_bytes(wire_key_of(install.key), "big")}
        slots = {"base_slot": install.base_slot, "generation": install.generation}
        return self._program.entry(BLOCKS, match, "locate", fragments=install.fragments, **slots)

    def _requests(
        self, kind: Update.Type, entries: list[p4runtime_pb2.TableEntry]
    ) -> list[p4runtime_pb2.WriteRequest]:
        updates = [Update(type=kind, entity=p4runtime_pb2.Entity(table_entry=entry)) for entry in entries]
        requests = []
        for start in range(0, len(updates), UPDATES_PER_WRITE):
            request = p4runtime_pb2.WriteRequest(device_id=DEVICE_ID)
            request.election_id.high, request.election_id.low = self._client.election_id
            request.updates.extend(updates[start : start + UPDATES_PER_WRITE])
            requests.append(request)
        return requests

    def fills(self) -> int:
        """Return how many values the switch has stored since its program was installed."""
        entry = p4runtime_pb2.CounterEntry(counter_id=self._program.counter_id(FILLS))
        entry.index.index = 0
        (counter,) = self._client.read([p4runtime_pb2.Entity(counter_entry=entry)])
        return int(counter.counter_entry.data.packet_count)

    def register_bytes(self) -> int:
        """Return the size of the program's registers in bytes, each value rounded up to whole bytes."""
        return sum(
            register.size * -(-register.type_spec.bitstring.bit.bitwidth // 8)
            for register in self._program.p4info.registers
        )

    @staticmethod
    def _check(results: list[Result]) -> None:
        refused = {result.name for result in results if result is not Result.OK}
        if refused:
            raise BenchError(f"the switch refused entries: {', '.join(sorted(refused))}")


@contextlib.contextmanager
def connect(address: str, process: subprocess.Popen[bytes], log_tail: Callable[[], str]) -> Iterator[Control]:
    """Open a session with a switch that is starting.

    Raises BenchError with the switch's output if it ends instead, or if P4Runtime fails during the session.
    """
    wait_serving(address, process, log_tail)
    client = SwitchClient(DEVICE_ID, address, (0, 1), _ignore, lambda: None, Costs())
    try:
        yield Control(client)
    except ControllerError as error:
        raise BenchError(f"{error}\n{log_tail()}") from None
    except grpc.RpcError as error:
        raise BenchError(f"{address}: {error}\n{log_tail()}") from None
    finally:
        client.tear_down()


def _ignore(message: Any) -> None:
    """Ignore a message that the switch sends without being asked."""


def wait_serving(address: str, process: subprocess.Popen[bytes], log_tail: Callable[[], str]) -> None:
    """Wait until the switch serves gRPC; raises BenchError with its output if it ends or takes too long."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    with grpc.insecure_channel(address) as channel:
        ready = grpc.channel_ready_future(channel)
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(grpc.FutureTimeoutError):
                ready.result(timeout=0.1)
                return
    raise BenchError(f"the switch did not start:\n{log_tail() or '(it said nothing)'}")


def _installs(blocks: int, fragments: int) -> list[Install]:
    names = [block_id(wire.TENANT_PUBLIC, key_of(block)) for block in range(blocks)]
    return [Install(name, block * fragments, _GENERATION, fragments) for block, name in enumerate(names)]


def switch_config(pool: PoolSize) -> SwitchConfig:
    """Return a configuration with nodes and the storage node at their ports, without address and files."""
    hosts = [Host(Mac.parse(mac(cable)), IPv4Address(ipv4(cable))) for cable in range(CABLES)]
    ports = [
        Port(cable + 1, "store" if cable == STORE else "node", host, limits=_LIMITS)
        for cable, host in enumerate(hosts)
    ]
    routes = [
        Route(IPv4Network(host.ipv4), port.port, host.mac) for host, port in zip(hosts, ports, strict=True)
    ]
    return SwitchConfig(
        "bench", DEVICE_ID, "", Path(), Path(), _CONTROLLER, tuple(ports), tuple(routes), pool
    )
