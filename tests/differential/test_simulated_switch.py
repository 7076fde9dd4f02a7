"""The simulator's switch against the P4 program: one random trace through both, and they do the same.

Each step of a trace is a GET, a STAT, an answer of the home, a PUT, a control operation or an update of the
pool index. After each step the test compares what left the switch and where to, and what the switch reported
to the controller; at the end, how many fragments the pool served, merged, filled and pushed.

The model leaves out on purpose: cells that collide, retransmissions, several writes of one key at one home.
The trace has none of them.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pytest
from scapy.packet import Packet

from controller import p4_constants as p4
from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV
from simulator.events import Loop
from simulator.messages import QUESTION, Ask, Block, Put, Reply, Sizes, Told
from simulator.network import Network
from simulator.switch import Switch, SwitchOptions
from tests.p4.conftest import PROGRAM, SIZES
from tests.p4.rig import CONTROLLER_IP, FRAGMENTS, NODES, STORE, Rig
from topologies.star import star
from v1model.backend import CompiledProgram
from v1model.compile import compile_p4
from v1model.dataplane import Replica

STEPS = 400
EPOCH_SHIFT = 22
GROUP, MEMBERS = 5, NODES[:2]
NAMES = {node: f"node{place}" for place, node in enumerate(NODES, 1)} | {STORE: "store1"}
PORTS = {name: port for port, name in NAMES.items()}
BLOCKS = 6
KEYS = [struct.pack(">IIQ", 2 * FRAGMENTS * block, 2 * FRAGMENTS * block, block) for block in range(BLOCKS)]
"""Their first words say in which cells of the pending table they are: each fragment has cells of its own."""
REPORT_COUNT = 2

Seen = tuple[str, str, int, int]
"""What arrived: kind of message, who got it, number of the block, and fragment."""


@pytest.fixture(scope="module")
def program() -> CompiledProgram:
    """Cells enough for all fragments, so that none collide, and short epochs."""
    defines = SIZES | {"PENDING_CELLS": 4096, "SKETCH_CELLS": 4096, "SKETCH_EPOCH_SHIFT": EPOCH_SHIFT}
    return compile_p4(PROGRAM, defines={name: str(value) for name, value in defines.items()})


class Real:
    """The P4 program; each method is a step and returns what arrived where."""

    def __init__(self, program: CompiledProgram, merging: bool) -> None:
        self._rig = Rig(program)
        self._rig.merging(merging)
        self._rig.report_from(REPORT_COUNT)
        self._rig.switch.set_multicast_group(GROUP, [Replica(port) for port in MEMBERS])
        self.switch = self._rig.switch

    def at(self, now_us: int) -> None:
        self._rig.now_us = now_us

    def install(self, block: int) -> None:
        self._rig.install(KEYS[block], base_slot=block * FRAGMENTS)

    def remove(self, block: int) -> None:
        self._rig.remove(KEYS[block])

    def get(self, node: int, block: int, fragment: int) -> list[Seen]:
        return self._send(node, self._rig.get(node, KEYS[block], fragment))

    def stat(self, node: int, block: int) -> list[Seen]:
        return self._send(
            node, self._rig.frame(node, STORE, KV(op=wire.OP_STAT, key=KEYS[block], fragments=0))
        )

    def answer(self, node: int, block: int, fragment: int, content: int) -> list[Seen]:
        make = self._rig.value if content else self._rig.not_found
        return self._send(STORE, make(node, KEYS[block], fragment, content=content))

    def fill(self, block: int) -> list[Seen]:
        return self._send(p4.CPU_PORT, self._rig.control(wire.OP_FILL, KEYS[block]))

    def answer_fill(self, block: int, content: int) -> list[Seen]:
        make, fragments = (self._rig.value, FRAGMENTS) if content else (self._rig.not_found, 1)
        seen = []
        for fragment in range(fragments):
            fields = {"content": content, "flags": wire.FLAG_FILL}
            seen += self._send(STORE, make(CONTROLLER_IP, KEYS[block], fragment, **fields))
        return seen

    def put(self, node: int, block: int, fragment: int, content: int) -> list[Seen]:
        put = self._rig.put(node, KEYS[block], [STORE], fragment, content=content)
        return self._send(node, put)

    def made(self, node: int, block: int, content: int) -> list[Seen]:
        ack = self._rig.put_ack(node, KEYS[block], FRAGMENTS - 1, content=content)
        return [one for one in self._send(STORE, ack) if one[0] != "ack"]

    def push(self, block: int, fragment: int) -> list[Seen]:
        return self._control(wire.OP_PUSH, block, fragment, sequence=GROUP)

    def reclaim(self, block: int, fragment: int) -> list[Seen]:
        return self._control(wire.OP_RECLAIM, block, fragment)

    def reports(self) -> list[tuple[int, int, int]]:
        """Block, count and number of waiters of each hot miss since the last call."""
        digests = self._rig.digests()
        return [(KEYS.index(d[1].to_bytes(16, "big")), d[8], max(1, d[9].bit_count())) for d in digests]

    def hits(self) -> list[int]:
        return [self._rig.hits(block * FRAGMENTS) for block in range(BLOCKS)]

    def counts(self) -> dict[str, int]:
        outcomes = Counter(self._rig.outcomes())
        return {name: outcomes[name] for name in ("served", "merged", "retried", "told")}

    def _control(self, op: int, block: int, fragment: int, **fields: int) -> list[Seen]:
        return self._send(p4.CPU_PORT, self._rig.control(op, KEYS[block], fragment, **fields))

    def _send(self, port: int, packet: Packet) -> list[Seen]:
        self._rig.to_cpu.clear()
        sent = self._rig.send(port, packet, after_us=0)
        seen = [self._seen(NAMES[to], frame) for to, frame in sent]
        return seen + [self._seen("controller", frame) for _, frame in self._rig.to_cpu]

    def _seen(self, name: str, frame: Packet) -> Seen:
        kv = frame[KV]
        kinds = {
            wire.OP_GET: "get", wire.OP_STAT: "stat", wire.OP_VALUE: "value", wire.OP_NOT_FOUND: "missing",
            wire.OP_FOUND: "found", wire.OP_PUT: "put", wire.OP_PUT_ACK: "ack",
        }  # fmt: skip
        return kinds[kv.op], name, KEYS.index(bytes(kv.key)), kv.frag


class _Host:
    """Records what comes to a host of the model."""

    def __init__(self, name: str, seen: list[Seen], number: Callable[[Block], int]) -> None:
        self._name, self._all, self._number = name, seen, number

    def asked(self, asks: Sequence[Ask], neighbour: str, tail_s: float) -> None:
        for ask in asks:
            kind, part = ("stat", 0) if ask.part == QUESTION else ("get", ask.part)
            self._all.append((kind, self._name, self._number(ask.block), part))

    def replied(self, replies: Sequence[Reply], neighbour: str, tail_s: float) -> None:
        for reply in replies:
            kind, part = "value" if reply.found else "missing", reply.ask.part
            if isinstance(reply, Told):
                kind, part = "found" if reply.held else "missing", 0
            self._all.append((kind, self._name, self._number(reply.ask.block), part))


class Model:
    """The simulator's switch in a star; the same steps. A fragment is a part of its own."""

    def __init__(self, merging: bool) -> None:
        self._loop = Loop()
        sizes = Sizes(FRAGMENTS * 512.0, FRAGMENTS, FRAGMENTS - 1, 0.1, 0.1)
        self._network = Network(self._loop, star(len(NODES), 1, 1e18), sizes, 0.0)
        options = SwitchOptions(merging=merging, sketch_epoch_s=2**EPOCH_SHIFT / 1e6)
        self._switch = Switch(self._loop, "s1", self._network, options, None)
        self._switch.report_count, self._switch.tells = REPORT_COUNT, True
        self._switch.groups[GROUP] = [NAMES[port] for port in MEMBERS]
        self._switch.on_miss = self._report
        self._switch.on_nowhere = self._nowhere
        self._network.attach("s1", self._switch)
        self._blocks = [Block(key, 0, b"", "store1", sizes.parts) for key in KEYS]
        self._all: list[Seen] = []
        self._reports: list[tuple[int, int, int]] = []
        for name in NAMES.values():
            self._network.attach(name, _Host(name, self._all, self._blocks.index))
        self._network.keepers["store1"] = self._kept
        self._told = 0

    def at(self, now_us: int) -> None:
        self._loop.at(now_us / 1e6, lambda: None)
        self._loop.run()

    def install(self, block: int) -> None:
        self._switch.install(self._blocks[block].key, block * FRAGMENTS)

    def remove(self, block: int) -> None:
        self._switch.remove(self._blocks[block].key)

    def get(self, node: int, block: int, fragment: int) -> list[Seen]:
        return self._ask(node, Ask(self._blocks[block], fragment, 1, NAMES[node], 1))

    def stat(self, node: int, block: int) -> list[Seen]:
        seen = self._ask(node, Ask(self._blocks[block], QUESTION, 1, NAMES[node], 1, fill=True))
        self._told += any(kind == "found" for kind, *_ in seen)
        return seen

    def answer(self, node: int, block: int, fragment: int, content: int) -> list[Seen]:
        ask = Ask(self._blocks[block], fragment, 1, NAMES[node], 1)
        return self._reply(Reply(ask, found=bool(content)))

    def fill(self, block: int) -> list[Seen]:
        for part in range(FRAGMENTS):
            self._switch.fill(self._fill(block, part))
        # The model fetches part by part what a switch asks for once.
        return [one for one in self._seen() if one[3] == 0]

    def answer_fill(self, block: int, content: int) -> list[Seen]:
        return [
            one
            for part in range(FRAGMENTS if content else 1)
            for one in self._reply(Reply(self._fill(block, part), found=bool(content)))
        ]

    def put(self, node: int, block: int, fragment: int, content: int) -> list[Seen]:
        self._network.put(NAMES[node], Put(self._blocks[block], 1, NAMES[node], fragment))
        return self._seen()

    def made(self, node: int, block: int, content: int) -> list[Seen]:
        self._network.say_made(Put(self._blocks[block], 1, NAMES[node]))
        return self._seen()

    def push(self, block: int, fragment: int) -> list[Seen]:
        pushed = self._switch.push(self._blocks[block], fragment, GROUP)
        return self._seen() if pushed else [("missing", "controller", block, fragment)]

    def reclaim(self, block: int, fragment: int) -> list[Seen]:
        sent = self._switch.reclaim(Put(self._blocks[block], 1, "s1", fragment, reclaim=True))
        return self._seen() if sent else [("missing", "controller", block, fragment)]

    def reports(self) -> list[tuple[int, int, int]]:
        reports, self._reports = self._reports, []
        return reports

    def hits(self) -> list[int]:
        return [self._switch.hits.get(block * FRAGMENTS, 0) for block in range(BLOCKS)]

    def counts(self) -> dict[str, int]:
        stats = self._switch.stats
        served, merged, retried = stats.served, stats.merged, stats.retried
        return {"served": served, "merged": merged, "retried": retried, "told": self._told}

    def _fill(self, block: int, part: int) -> Ask:
        return Ask(self._blocks[block], part, 1, "s1", 0, fill=True)

    def _ask(self, node: int, ask: Ask) -> list[Seen]:
        self._network.ports[NAMES[node], "s1"].ask([ask])
        return self._seen()

    def _reply(self, reply: Reply) -> list[Seen]:
        self._network.ports["store1", "s1"].reply([reply])
        return self._seen()

    def _kept(self, put: Put) -> None:
        self._all.append(("put", "store1", self._blocks.index(put.block), put.fragment))

    def _report(self, ask: Ask, count: int, backlog_ms: float, waiters: int) -> None:
        self._reports.append((self._blocks.index(ask.block), count, max(1, waiters)))

    def _nowhere(self, block: Block) -> None:
        self._all.append(("missing", "controller", self._blocks.index(block), 0))

    def _seen(self) -> list[Seen]:
        self._loop.run()
        seen = self._all.copy()
        self._all.clear()
        return seen


class Trace:
    """Random steps that could happen: the home answers what reached it and makes a block of one whole PUT."""

    def __init__(self, seed: int, both: Sequence[Real | Model]) -> None:
        self._rng, self._both = random.Random(seed), both
        self._now_us = 1_000_000
        self._installed: set[int] = set()
        self._at_home: list[tuple[int, int, int]] = []
        """GETs that reached the home: node, block and fragment."""
        self._fills: set[int] = set()
        self._content = dict.fromkeys(range(BLOCKS // 2), 1)
        """Which write of a block the home holds."""
        self._puts: dict[int, tuple[int, int]] = {}
        """By block that is being put: the node, and how many fragments have passed."""
        self._steps = [self._get] * 8 + [self._answer] * 6 + [self._put] * 4
        self._steps += [self._index, self._stat, self._fill, self._answer_fill, self._push, self._reclaim]
        self.done = Counter[str]()

    def step(self) -> None:
        rng = self._rng
        self._now_us += rng.choice(
            (1, 1_003, 50_021, 150_037, 1 << EPOCH_SHIFT if rng.random() < 0.05 else 1)
        )
        for one in self._both:
            one.at(self._now_us)
        rng.choice(self._steps)()

    def end(self) -> None:
        """What is in the pool is in both, fragment by fragment."""
        for block in range(BLOCKS):
            for fragment in range(FRAGMENTS):
                self._all("get", NODES[0], block, fragment)

    def _all(self, what: str, *arguments: int) -> list[Seen]:
        """Take a step on both sides, which must do the same."""
        real, model = (sorted(getattr(one, what)(*arguments) or ()) for one in self._both)
        assert real == model, (what, arguments, real, model)
        real_reports, model_reports = (one.reports() for one in self._both)
        assert real_reports == model_reports, ("reports", what, arguments, real_reports, model_reports)
        self.done.update(kind for kind, *_ in real)
        self.done["reported"] += len(real_reports)
        return real

    def _block(self) -> int:
        return self._rng.randrange(BLOCKS)

    def _get(self) -> None:
        node, block, fragment = self._rng.choice(NODES), self._block(), self._rng.choice((0, 0, 1, 2, 3))
        if not fragment and block in self._fills:
            return  # the two share a cell
        if any(kind == "get" for kind, *_ in self._all("get", node, block, fragment)):
            self._at_home.append((node, block, fragment))

    def _answer(self) -> None:
        """The home answers what it was asked, or the GET is lost."""
        if not self._at_home:
            return
        node, block, fragment = self._at_home.pop(self._rng.randrange(len(self._at_home)))
        if self._rng.random() < 0.9:
            self._all("answer", node, block, fragment, self._content.get(block, 0))

    def _put(self) -> None:
        """The next fragment of a block that is being put; after the last the home has made the block of it,
        unless it held one."""
        block = self._block()
        node, passed = self._puts.pop(block, (self._rng.choice(NODES), 0))
        if passed < FRAGMENTS:
            self._all("put", node, block, passed, node)
            self._puts[block] = node, passed + 1
        elif block not in self._content:
            self._content[block] = node
            self._all("made", node, block, node)

    def _index(self) -> None:
        block = self._block()
        if block in self._installed:
            self._all("remove", block)
            self._installed.remove(block)
        else:
            self._all("install", block)
            self._installed.add(block)

    def _stat(self) -> None:
        self._all("stat", self._rng.choice(NODES), self._block())

    def _fill(self) -> None:
        block = self._block()
        asked = any([block, 0] == of for _, *of in self._at_home)
        if block in self._installed and block not in self._fills and not asked:
            self._all("fill", block)
            self._fills.add(block)

    def _answer_fill(self) -> None:
        for block in sorted(self._fills)[:1]:
            self._fills.remove(block)
            self._all("answer_fill", block, self._content.get(block, 0))

    def _push(self) -> None:
        self._all("push", self._block(), self._rng.randrange(FRAGMENTS))

    def _reclaim(self) -> None:
        self._all("reclaim", self._block(), self._rng.randrange(FRAGMENTS))


def traces(program: CompiledProgram, merging: bool, seeds: range) -> Iterator[tuple[Real, Model, Trace]]:
    for seed in seeds:
        real, model = Real(program, merging), Model(merging)
        with real.switch:
            yield real, model, Trace(seed, (real, model))


@pytest.mark.parametrize("merging", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_simulators_switch_does_what_the_p4_program_does(program: CompiledProgram, merging: bool) -> None:
    done: Counter[str] = Counter()
    for real, model, trace in traces(program, merging, range(3)):
        for _ in range(STEPS):
            trace.step()
        trace.end()
        assert real.hits() == model.hits()
        assert real.counts() == model.counts()
        done += trace.done + Counter(real.counts())
    expected = {"get", "value", "missing", "found", "put", "stat", "reported", "served", "told"}
    assert expected | ({"merged", "retried"} if merging else set()) <= set(+done)
