"""Carries out a plan."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from experiments.simulate_faults.history import CRASHED, LATE, UNREADABLE, WRONG, History
from experiments.simulate_faults.network import Link
from experiments.simulate_faults.plan import CHAIN_BLOCKS, NETWORK_FAULTS
from experiments.simulate_faults.virtual_time import VirtualLoop
from experiments.simulate_faults.world import World
from hostlib.protocol.block import Place
from hostlib.protocol.errors import BlockNotFoundError, TransferError
from hostlib.protocol.hints import Hint, HintOutcome
from hostlib.protocol.transfer import BlockRef
from hostlib.protocol.wire import fingerprint

if TYPE_CHECKING:
    from experiments.simulate_faults.control import Control
    from experiments.simulate_faults.plan import Fault, Operation, Plan
    from hostlib.client.client import Client
    from hostlib.protocol.transfer import FetchedBlock
    from topologies.engines import Artifacts

OPERATION_S: Final = 60.0
"""Every operation ends within this. A fragment has 10 s, and a block that changes under its reader several
homes, one after the other."""
EXPECTED_OF: Final = 2
"""Number of writes of which one is of a block that the controller was told of before, for COMPUTING_S."""
COMPUTING_S: Final = 0.02
BLACK_HOLE_BYTES: Final = 600
"""Longer frames are lost, as where a link's MTU is less than its ends think: requests pass, values do not."""
LOSSY_PORT: Final = 0.3
SLOW_DISK: Final = 100.0
"""Factor by which a disk that is about to fail is slower than usual."""
ENDING_S: Final = 12.0
"""Seconds after its lifetime in which a block is gone everywhere: storage nodes tell each other and the
controller for 10 s."""
RECOVERY_S: Final = 60.0
"""Seconds within which everybody is back when nothing is wrong any more."""


class Player:
    """One run of a plan."""

    def __init__(self, plan: Plan, artifacts: Artifacts) -> None:
        self.history = History(plan.replicas)
        self.trace = hashlib.blake2b()
        self.ended_s = 0.0
        self._plan, self._artifacts = plan, artifacts
        self._all_began = asyncio.Event()
        self._running: dict[asyncio.Task[None], Operation] = {}
        self._world: World
        self._loop: VirtualLoop

    async def play(self) -> None:
        """Run from the start to the last check."""
        self._loop = cast("VirtualLoop", asyncio.get_running_loop())
        self._loop.set_exception_handler(self._on_exception)
        world = self._world = self._make_world()
        self._begin_next(iter(self._plan.operations))
        for fault in self._plan.faults:
            self._loop.call_at(fault.at_s, self._begin_fault, fault)
        ends_s = [fault.at_s + fault.for_s for fault in self._plan.faults]
        ends_s += [operation.at_s for operation in self._plan.operations]
        await asyncio.sleep(max(ends_s, default=0.0) + 0.001)
        await self._all_began.wait()  # a clock that was put forward may have left some behind
        await self._finish_operations()
        await self._recover()
        await self._read_back()
        for store in world.stores:
            store.kill(keep=False)
        self.history.check_disks([store.disk for store in world.stores])
        self.history.outcomes["frames"] = world.network.frames
        self.history.outcomes["pool_fragments"] += sum(one.stats.from_pool for one in world.clients)
        for control in list(world.controllers.alive):
            self._stop_controller(control)
        self.ended_s = self._loop.time()
        world.close()

    def _make_world(self) -> World:
        """Return the system that the plan runs in."""
        return World(self._plan, self._artifacts)

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Record an exception that no code of the hosts or the controller caught."""
        error = context.get("exception")
        self.history.violation(CRASHED, f"{loop.time():.4f} s: {context['message']}: {error!r}")

    # Operations.

    def _begin_next(self, operations: Iterator[Operation]) -> None:
        """Begin the next operation when it is due. There is one timer at a time: thousands would slow every
        other one."""
        operation = next(operations, None)
        if operation is None:
            self._all_began.set()
        else:
            self._loop.call_at(operation.at_s, self._begin, operation, operations)

    def _begin(self, operation: Operation, operations: Iterator[Operation]) -> None:
        self._begin_next(operations)
        task = self._loop.create_task(self._do(operation))
        self._running[task] = operation
        task.add_done_callback(self._running.pop)

    async def _do(self, operation: Operation) -> None:
        began_s = self._loop.time()
        try:
            if operation.delete:
                await self._delete(operation)
            else:
                await (self._write(operation) if operation.fragments else self._read(operation))
            outcome = "done"
        except asyncio.CancelledError:
            outcome = "killed"  # its node was
        except TransferError as error:
            outcome = type(error).__name__
        if outcome != "done":
            self.history.outcomes[outcome] += 1
        now_s = self._loop.time()
        self.trace.update(f"{operation.number} {outcome} {now_s:.6f}\n".encode())
        if now_s - began_s > OPERATION_S:
            self.history.violation(
                LATE, f"{now_s:.4f} s: operation {operation.number} took {now_s - began_s:.1f} s"
            )

    async def _read(self, operation: Operation) -> None:
        if operation.chain:
            await self._read_chain(operation)
            return
        place, block = self._block(operation.node, operation.key)
        durable_s, began_s = self.history.durable_s.get(place), self._loop.time()
        try:
            self._was_read(operation, place, await self._world.clients[operation.node].get(block))
        except BlockNotFoundError:
            self._was_not_read(operation, place, durable_s, began_s)

    async def _read_chain(self, operation: Operation) -> None:
        first = operation.key - operation.key % CHAIN_BLOCKS
        chain = [self._block(operation.node, key) for key in range(first, first + CHAIN_BLOCKS)]
        durable_s = [self.history.durable_s.get(place) for place, _ in chain]
        began_s = self._loop.time()
        fetched = await self._world.clients[operation.node].get_chain([block for _, block in chain])
        for (place, _), block in zip(chain, fetched.blocks, strict=False):
            self._was_read(operation, place, block)
        if isinstance(fetched.ended_by, BlockNotFoundError):
            at = len(fetched.blocks)
            self._was_not_read(operation, chain[at][0], durable_s[at], began_s)
        elif fetched.ended_by is not None:
            raise fetched.ended_by
        self.history.outcomes["chains"] += 1

    def _was_not_read(
        self, operation: Operation, place: Place, durable_s: float | None, began_s: float
    ) -> None:
        if self._world.misses_lists(operation.node, place.key):
            self.history.outcomes["not_found_by_an_old_list"] += 1
        else:
            self.history.not_read(operation, place, durable_s, began_s, self._loop.time())

    def _was_read(self, operation: Operation, place: Place, block: FetchedBlock) -> None:
        self.trace.update(block.content)
        asked_s, content = block.times.probe_sent_s, bytes(block.content)
        is_cut_off = partial(self._world.is_cut_off_with_a_home, operation.node, place.key)
        self.history.read(operation, place, content, asked_s, self._loop.time(), is_cut_off=is_cut_off)

    async def _delete(self, operation: Operation) -> None:
        place, block = self._block(operation.node, operation.key)
        attempt, held = self.history.delete_begins(place, self._loop.time()), self._world.held(place)
        client = self._world.clients[operation.node]
        down, lifetime_s = self._down(client), operation.lifetime_s
        untold = client.stats.pools_untold
        if not lifetime_s:
            await client.delete(block)
        elif await client.hint(block, Hint.EXPIRE, lifetime_s) is not HintOutcome.DONE:
            self.history.outcomes["lifetimes_refused"] += 1
            return
        if client.stats.pools_untold > untold and len(self._world.fabric.switches) > 1:
            # The controller did not answer: pools may go on serving it.
            self.history.outcomes["pools_untold"] += 1
            return
        down |= self._down(client)  # who comes back while the controller is told is not asked any more
        found = {content for address, content in held.items() if address not in down}
        left = {content for address, content in self._world.held(place).items() if address in down}
        at_s = self._loop.time() + (lifetime_s + ENDING_S if lifetime_s else 0.0)
        self.history.deleted(attempt, at_s, left - found)

    def _down(self, client: Client) -> set[str]:
        """Return the storage nodes that are down by a client's list."""
        return {store.address for store in self._world.stores if client.members.is_down(store.address)}

    async def _write(self, operation: Operation) -> None:
        place, block = self._block(operation.node, operation.key)
        content, began_s = self.history.offered(operation, place), self._loop.time()
        client = self._world.clients[operation.node]
        if operation.number % EXPECTED_OF == 0:
            client.expect([(block, operation.fragments)])
            await asyncio.sleep(COMPUTING_S)
            client = self._world.clients[operation.node]  # it may have been killed meanwhile
        await client.put(block, content, durable=operation.durable, replicas=operation.replicas)
        disks = [store.disk for store in self._world.stores]
        is_found = not self._world.is_behind(operation.node)
        self.history.acknowledged(operation, place, content, disks, began_s, self._loop.time(), is_found)

    def _block(self, node: int, number: int) -> tuple[Place, BlockRef]:
        """Return a key of a node's tenant, at its place in its chain."""
        tenant = self._world.tenant(node)
        seal = self._world.seals[tenant]
        key, depth = seal.key(number.to_bytes(8, "big")), number % CHAIN_BLOCKS
        parent = fingerprint(seal.key((number - 1).to_bytes(8, "big"))) if depth else 0
        return Place(tenant, key), BlockRef(key, depth, CHAIN_BLOCKS, parent)

    # The end.

    async def _finish_operations(self) -> None:
        if self._running:
            await asyncio.wait(list(self._running), timeout=OPERATION_S)
        for operation in self._running.values():
            self.history.violation(LATE, f"operation {operation.number} never ends")

    async def _recover(self) -> None:
        until_s = self._loop.time() + RECOVERY_S
        while not self._world.recovered():
            if self._loop.time() > until_s:
                self.history.violation(LATE, f"not all are back {RECOVERY_S:g} s after the last fault")
                return
            await asyncio.sleep(0.1)

    async def _read_back(self) -> None:
        """Read what was acknowledged as durable, with new clients."""
        for place in list(self.history.durable):
            node = next(node for node in range(4) if self._world.tenant(node) == place.tenant)
            try:
                async with asyncio.timeout(OPERATION_S):
                    block = await self._world.clients[node].get(BlockRef(place.key))
            except TimeoutError:
                self.history.violation(LATE, f"block {place.key.hex()}: the last read never ends")
                return
            except TransferError as error:
                self.history.violation(UNREADABLE, f"was acknowledged, and can't be read in the end: {error}")
                continue
            if self.history.is_deleted(place, bytes(block.content), self._loop.time()):
                self.history.violation(WRONG, f"block {place.key.hex()}: read in the end what was deleted")
            if not self.history.is_one_write(place, bytes(block.content)):
                self.history.violation(WRONG, f"block {place.key.hex()}: read in the end what nobody wrote")

    # What goes wrong.

    def _begin_fault(self, fault: Fault) -> None:
        self.history.outcomes["faults"] += 1
        self.trace.update(f"{fault.kind} {fault.targets}\n".encode())
        self._fault_named(fault)(fault)

    def _fault_named(self, fault: Fault) -> Callable[[Fault], None]:
        if fault.kind in (*NETWORK_FAULTS, "late"):
            return self._worsen_network
        named: Callable[[Fault], None] = getattr(self, f"_{fault.kind}")
        return named

    def _later(self, fault: Fault, work: Callable[[], None]) -> None:
        self._loop.call_later(fault.for_s, work)

    def _worsen_network(self, fault: Fault) -> None:
        rates = self._world.network.rates
        setattr(rates, fault.kind, fault.amount)
        self._later(fault, lambda: setattr(rates, fault.kind, 0.0))

    def _kill_store(self, fault: Fault) -> None:
        (index,) = fault.targets
        store = self._world.stores[index]
        if store.node is not None:
            store.kill()
            self._later(fault, store.start)

    def _slow_store(self, fault: Fault) -> None:
        store = self._world.stores[fault.targets[0]]
        store.slow_s = store.port.link.slow_s = fault.amount

        def fast() -> None:
            store.slow_s = store.port.link.slow_s = 0.0

        self._later(fault, fast)

    def _full_disk(self, fault: Fault) -> None:
        disk = self._world.stores[fault.targets[0]].disk
        disk.full = True
        self._later(fault, lambda: setattr(disk, "full", False))

    def _failing_disk(self, fault: Fault) -> None:
        disk = self._world.stores[fault.targets[0]].disk
        disk.failing = True
        self._later(fault, lambda: setattr(disk, "failing", False))

    def _slow_disk(self, fault: Fault) -> None:
        store = self._world.stores[fault.targets[0]]
        store.slow_down_disk(SLOW_DISK)
        self._later(fault, lambda: store.slow_down_disk(1.0))

    def _cut(self, fault: Fault) -> None:
        self._spoil_links(fault, "cut", True)

    def _deaf(self, fault: Fault) -> None:
        self._spoil_links(fault, "deaf", True)

    def _mute(self, fault: Fault) -> None:
        self._spoil_links(fault, "mute", True)

    def _black_hole(self, fault: Fault) -> None:
        self._spoil_links(fault, "longest_bytes", BLACK_HOLE_BYTES)

    def _lossy_port(self, fault: Fault) -> None:
        self._spoil_links(fault, "lose", LOSSY_PORT)

    def _spoil_links(self, fault: Fault, what: str, value: object) -> None:
        hosts = self._world.hosts()
        links = [hosts[index % len(hosts)].link for index in fault.targets]
        whole = Link()
        for link in links:
            setattr(link, what, value)

        def mend() -> None:
            for link in links:
                setattr(link, what, getattr(whole, what))

        self._later(fault, mend)

    def _restart_switch(self, fault: Fault) -> None:
        switches = list(self._world.network.switches.values())
        switch = switches[fault.targets[0] % len(switches)]
        switch.stop()
        self._later(fault, lambda: setattr(switch, "up", True))

    def _restart_controller(self, fault: Fault) -> None:
        controllers = self._world.controllers
        if controllers.last is not None:
            self._stop_controller(controllers.last)
        self._later(fault, self._start_controller)

    def _second_controller(self, fault: Fault) -> None:
        """Start a second controller, which takes over; then one of the two is killed."""
        controllers = self._world.controllers
        second = controllers.start()
        victim = second if fault.amount > 1 else controllers.alive[0]
        self._later(fault, lambda: self._stop_controller(victim))

    def _start_controller(self) -> None:
        self._world.controllers.start()

    def _stop_controller(self, control: Control) -> None:
        self.history.outcomes["pushed_blocks"] += control.pushed
        self._world.controllers.stop(control)

    def _kill_node(self, fault: Fault) -> None:
        node = fault.targets[0] % len(self._world.ports)
        self.history.outcomes["pool_fragments"] += self._world.clients[node].stats.from_pool
        self._world.restart_client(node)

    def _stop_clock(self, fault: Fault) -> None:
        self._loop.step_clock(fault.amount)

    def _step_wall_clock(self, fault: Fault) -> None:
        offset_s = self._world.controllers.wall_offset_s
        self._world.controllers.wall_offset_s = -10 * fault.amount if offset_s > 0 else 10 * fault.amount

    def _flip_slots(self, fault: Fault) -> None:
        for _ in range(int(fault.amount)):
            self._world.flip_slot()
