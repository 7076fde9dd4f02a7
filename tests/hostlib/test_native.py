"""The compiled core against the Python that it stands for, also where what comes is not what it should be."""

from __future__ import annotations

import asyncio
import gc
import random
import subprocess
import sys
import weakref
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.simulate_faults.virtual_time import run_virtual
from hostlib import native
from hostlib.client.client import Client
from hostlib.native import PYTHON, CompiledCore, Core, flow_window
from hostlib.native.build import BuildError, build, library
from hostlib.native.lane import POOL, Lane, Request
from hostlib.native.lane_options import LaneOptions
from hostlib.protocol import wire
from hostlib.protocol.errors import TransferError
from hostlib.protocol.members import Members
from hostlib.protocol.seal import closed
from hostlib.protocol.transfer import BlockRef, FetchedBlock
from hostlib.transport.transport import Receiver
from tests.hostlib.bursts import Counting, spoil
from tests.hostlib.sealed import SEAL, TENANT, derived_fragments

KEY = bytes(range(16))
FULL = wire.VALUE_BYTES
VALUE_LENGTHS = [0, 1, 511, 512, min(FULL, 513), FULL - 1, FULL, FULL]
HOME, NODE = "10.0.0.101", "10.0.0.1"


def test_its_sources_compile_without_a_warning(compiled: Core) -> None:
    build(("-Werror",))


def test_the_layout_is_that_of_the_wire_format(compiled: Core) -> None:
    at, offsets = 0, {}
    for name, bits in wire.FIELDS:
        offsets[f"AT_{name}"] = at
        at += bits // 8
    theirs = {name: value for name, value in vars(compiled).items() if isinstance(value, int | float)}
    assert len(theirs) > 20
    ours = vars(wire) | vars(flow_window) | vars(native) | offsets | {"is_compiled": 1}
    assert theirs == {name: ours.get(name) for name in theirs}
    assert vars(compiled)["POOL"] == POOL


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 560, 1500])
def test_the_checksum_is_zlibs(compiled: CompiledCore, length: int) -> None:
    data = random.Random(length).randbytes(length)
    assert compiled.crc32(data) == compiled.crc32(data, True) == zlib.crc32(data)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_tags_are_hashlibs(compiled: CompiledCore, kind: int) -> None:
    """Of as many messages as are hashed side by side, and of more and fewer."""
    chance = random.Random(kind)
    state = compiled.tag_state(SEAL.tag_key)
    for count in range(10):
        messages, tags = [], b""
        for at in range(count):
            key, value = chance.randbytes(16), chance.randbytes(chance.choice(VALUE_LENGTHS))
            content = chance.getrandbits(64)
            message = wire.Message(wire.OP_VALUE, key, at, count, tenant=TENANT, content=content, value=value)
            messages.append(wire.encode(message))
            tags += SEAL.tag(key, at, count, content, value)
        try:
            assert compiled.tags(state, messages, kind) == tags
        except ValueError as error:
            pytest.skip(str(error))
    with pytest.raises(ValueError, match="no value"):
        compiled.tags(state, [messages[0], bytes(591)], kind)
    with pytest.raises(ValueError, match="key"):
        compiled.tag_state(bytes(65))


@pytest.mark.parametrize("length", [1, 16, 32, 64])
def test_tags_are_made_with_keys_of_any_length(compiled: CompiledCore, length: int) -> None:
    key = bytes(range(length))
    message = wire.encode(wire.Message(wire.OP_VALUE, KEY, 0, 1, value=bytes(512)))
    proof = blake2b(message[32:64] + message[80:592], key=key, digest_size=16).digest()
    assert compiled.tags(compiled.tag_state(key), [message]) == closed(proof)
    message = wire.encode(wire.Message(wire.OP_VALUE, KEY, 1, 2, value=bytes(512)))
    right = blake2b(message[32:64] + message[80:592], key=key, digest_size=16).digest()
    assert compiled.tags(compiled.tag_state(key), [message]) == right


def test_requests_are_made_as_one_by_one(compiled: Core) -> None:
    made = compiled.new_requests("owner", 1, 300)
    assert all(type(request) is compiled.Request for request in made)
    fields = Request.__slots__
    assert [[getattr(one, name) for name in fields] for one in made] == [
        [getattr(core.Request("owner", number), name) for name in fields]
        for number in range(1, 300)
        for core in (PYTHON if number % 2 else compiled,)
    ]
    for first, end in ((-1, 3), (3, 2), (0, 1 << 40)):
        with pytest.raises(ValueError, match="fragments"):
            compiled.new_requests("owner", first, end)


class Hearsay:
    """A transport to a home that answers in bursts of what should come and what should not."""

    def __init__(self, seed: int, blocks: dict[bytes, list[wire.Message]]) -> None:
        self.queued_bytes = 0
        self.sent: list[bytes] = []
        self._blocks = blocks
        self._chance = random.Random(seed)
        self._due: list[bytes] = []

    def set_receiver(self, receiver: Receiver) -> None:
        self.receiver = receiver

    def send(self, address: str, datagrams: Sequence[bytes]) -> None:
        self.sent += [address.encode(), *datagrams]
        for message in map(wire.decode, datagrams):
            if message.op == wire.OP_GET and self._chance.random() < 0.95:
                self._due.append(self._reply(message))

    def _reply(self, asked: wire.Message) -> bytes:
        chance = self._chance
        past = asked.flags & wire.FLAG_BYPASS if chance.random() < 0.9 else 0
        flags = past | (0 if past else chance.choice([0, 0, wire.FLAG_FROM_POOL, wire.FLAG_MERGED]))
        message = self._blocks[asked.key][asked.fragment]
        epoch = chance.choice([0] * 20 + [1])
        sequence = asked.sequence - chance.choice([0] * 20 + [100_000]) & 0xFFFFFFFF
        return wire.encode(
            message._replace(flags=flags, backlog_ms=chance.randrange(120), epoch=epoch, sequence=sequence)
        )

    def burst(self) -> list[bytes]:
        """Some of what is due: mostly in order, now and then twice, damaged or for somebody else."""
        chance = self._chance
        count = chance.randint(1, 40)
        burst, self._due = self._due[:count], self._due[count:]
        for _ in range(chance.choice([0, 0, 1, 5]) if burst else 0):
            at = chance.randrange(len(burst))
            if (how := chance.randrange(5)) < 4:
                spoil(burst, at, how, chance, (0, 80, 80 + wire.VALUE_BYTES))
            else:  # another write, or another tenant's
                other = bytearray(burst[at].ljust(wire.KV_HEADER_BYTES))
                other[chance.choice([33, 47])] ^= 1
                burst.insert(at, bytes(other))
        return burst


def play(seed: int, how: str) -> list[Any]:
    """What a client sends and comes to know from bursts that the seed decides."""

    async def main() -> list[Any]:
        chance = random.Random(seed)
        lengths = [chance.choice([1, FULL, FULL + 1, 5000, 40_000, 70_000]) for _ in range(6)]
        keys = [bytes([number] * 16) for number in range(len(lengths))]
        blocks = {
            key: derived_fragments(wire.OP_VALUE, key, length)
            for key, length in zip(keys, lengths, strict=True)
        }
        transport = Hearsay(seed, blocks)
        client = Client(transport, Members.of([HOME]), SEAL)
        loop = client._exchange.loop
        buffers = [bytearray(chance.choice([length, length + 9, 100_000])) for length in lengths]

        async def fetch(key: bytes, buffer: bytearray) -> tuple[str, int, bytes] | str:
            block = BlockRef(key, 0, 1)
            try:
                got: FetchedBlock = await (
                    client.get_into(block, memoryview(buffer)) if how == "into" else client.get(block)
                )
            except TransferError as error:
                return repr(error)
            return (str(got.times), got.pool_fragments * 1000 + got.merged_fragments, bytes(got.content))

        async def chain() -> list[Any]:
            refs = [BlockRef(key, depth, len(keys), 7, 80_000) for depth, key in enumerate(keys)]
            fetched = await client.get_chain(refs)
            return [fetched.blocks, repr(fetched.ended_by)]

        tasks: list[asyncio.Task[Any]] = [
            loop.create_task(fetch(key, buffer)) for key, buffer in zip(keys, buffers, strict=True)
        ]
        if how == "chain":
            tasks = [loop.create_task(chain())]
        seen: list[Any] = []
        for _ in range(3000):
            await asyncio.sleep(0.001)
            burst = transport.burst()
            if burst:
                transport.receiver(HOME, burst)
            lanes = client._exchange._lanes.items()
            seen.append(
                [(name, lane.window, lane.allowed, lane.in_flight, lane.timeout_s) for name, lane in lanes]
            )
            seen.append((transport.sent[:], client._exchange._node._size, client.backlog_s(HOME)))
            transport.sent.clear()
            if all(task.done() for task in tasks):
                break
        seen.append([await task for task in tasks])
        seen.append(asdict(client.stats))
        client.close()
        return seen

    return run_virtual(main())


@pytest.mark.parametrize("how", ["alone", "into", "chain"])
@pytest.mark.parametrize("seed", range(12))
def test_bursts_change_nothing_but_the_cost(
    compiled: Core, monkeypatch: pytest.MonkeyPatch, seed: int, how: str
) -> None:
    counting = Counting(compiled, "take_values")
    monkeypatch.setattr(native, "core", lambda: PYTHON)
    reference = play(seed, how)
    monkeypatch.setattr(native, "core", lambda: counting)
    assert play(seed, how) == reference
    assert counting.taken > 10 * 512 / FULL


def test_without_a_compiler_the_hosts_run_in_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(BuildError, match="no C compiler"):
        build()
    assert not library().exists()
    told = [sys.executable, "-c", "from hostlib import native; print(native.core().is_compiled)"]
    done = subprocess.run(told, env={"WEIR_PURE": "1"}, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.slow
def test_hostile_bursts_find_nothing_in_sanitized_code() -> None:
    command = [sys.executable, "-m", "hostlib.tools.fuzz", "--bursts", "3000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "3,000 bursts" in done.stdout


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["answers", "answers", "shared", "add", "launched", "drop", "again", "feel", "expire"]
        ),
        st.integers(1, 9),
        st.floats(0.0, 0.5),
        st.none() | st.integers(0, 3000),
    ),
    max_size=60,
)
"""Steps: an event, how many requests it is of, seconds since the step before, and the backlog in ms."""


class Played:
    """Two lanes of one home that go through steps, with requests of one core."""

    def __init__(self, core: Core, home: str) -> None:
        trips = core.RoundTrips()
        self.core, self.number = core, 0
        self.lanes: list[Lane[str]] = [core.Lane(home, LaneOptions(), trips) for _ in range(2)]
        self.sent: list[Request[str]] = []
        self.add(40)

    def add(self, count: int) -> None:
        for lane in self.lanes:
            lane.add(self.new(count))

    def new(self, count: int) -> list[Request[str]]:
        self.number += count
        return self.core.new_requests("owner", self.number - count, self.number)

    def step(self, what: str, count: int, now_s: float, backlog_ms: int | None) -> list[Any]:
        some = [self.sent.pop(0) for _ in range(min(count, len(self.sent)))]
        lane, seen = self.lanes[count % 2], list[Any]()
        if what in ("answers", "shared"):
            for request in some:
                assert request.lane is not None
                request.lane.settle(request, now_s, backlog_ms, what == "shared")
        elif what == "add":
            self.add(count)
        elif what == "launched":
            lane.launched([*some, *self.new(count)], now_s)
        elif what == "drop":
            self.core.drop(some)
        elif what == "again":
            for request in some:
                lane.again(request)
        elif what == "feel":
            lane.feel(backlog_ms or 0)
        else:
            for parts in lane.expire(now_s):
                seen += [(one.fragment, one.tries, one.done) for one in parts]
        for one in self.lanes:
            taken = one.take(now_s, None if count % 3 else 2 * count)
            self.sent += taken
            seen += [(r.fragment, r.tries, r.first_sent_s, r.sent_s, r.timeout_s, r.flags) for r in taken]
            seen += [
                one.window,
                one.allowed,
                one.in_flight,
                one.timeout_s,
                one.oldest_s(),
                one.waits,
                one.busy,
            ]
            seen.append(one.earliest_timeout_s())
        return seen


@given(STEPS, st.sampled_from(["10.0.0.101", POOL]))
def test_lanes_are_alike(compiled: Core, steps: list[Any], home: str) -> None:
    played, now_s = [Played(core, home) for core in (PYTHON, compiled)], 1.0
    for what, count, later_s, backlog_ms in steps:
        now_s += later_s
        python, native_ = (one.step(what, count, now_s, backlog_ms) for one in played)
        assert python == native_


def test_a_lane_that_nobody_has_any_more_is_collected_with_its_requests(compiled: Core) -> None:
    class Owner:
        pass

    owner = Owner()
    gone = weakref.ref(owner)
    lane: Lane[Owner] = compiled.Lane("home", LaneOptions())
    lane.add(compiled.new_requests(owner, 0, 9))
    lane.take(1.0)
    owner.lane = lane  # type: ignore[attr-defined]
    del owner, lane
    gc.collect()
    assert gone() is None
