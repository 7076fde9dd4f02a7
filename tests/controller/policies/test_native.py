"""The compiled core decides as the reference does, event by event, and forgets what it should."""

import gc
import random
from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from controller.policies import Admit, Demoted, Event, Evict, Found, Hits, HomeLoad, Lost, Miss, Pin, Unpin
from controller.policies.reuse import native
from controller.policies.reuse import reuse as module
from controller.policies.reuse.reference import Reference
from controller.policies.reuse.reuse import Reuse
from controller.policies.reuse.reuse_model import Learner
from controller.policies.reuse.reuse_parts import Parts
from hostlib.native.build import BuildError
from tests.controller.policies.checked import Checked
from tests.slow import rest_slow
from workload.generate import generate


@pytest.fixture(scope="module")
def compiled() -> native.MakeCore:
    try:
        return native.load(native.make())
    except BuildError as error:
        pytest.skip(str(error))


def test_its_sources_compile_without_a_warning(compiled: native.MakeCore) -> None:
    native.make(("-Werror",))


def both(compiled: native.MakeCore, monkeypatch: pytest.MonkeyPatch, **options: object) -> list[Checked]:
    policies = []
    for make in (compiled, Reference):
        monkeypatch.setattr(module, "compiled", lambda make=make: make)
        policies.append(Checked(Reuse(**options)))  # type: ignore[arg-type]
    return policies


def accesses(shape: str, seed: int, requests: int) -> Iterator[tuple[int, float, int, int, int | None]]:
    for request in generate(shape, seed, requests).requests:
        chain = request.blocks
        for depth, block in enumerate(chain):
            yield block, request.arrival_s, depth, len(chain), chain[depth - 1] if depth else None


def same(policies: list[Checked], event: Event) -> None:
    ours, reference = (policy.handle(event) for policy in policies)
    assert list(ours) == list(reference), event


@pytest.mark.parametrize(
    ("shape", "blocks"),
    rest_slow(
        [("chat", 100), ("agents", 19)],
        [("chat", 100), ("rag", 300), ("scan", 60), ("agents", 19), ("phases", 400)],
    ),
)
def test_same_decisions(
    compiled: native.MakeCore, monkeypatch: pytest.MonkeyPatch, shape: str, blocks: int
) -> None:
    policies = both(compiled, monkeypatch, capacity_blocks=blocks)
    waits = random.Random(5)
    for number, (block, now_s, depth, length, parent) in enumerate(accesses(shape, 11, 250)):
        if number % 20 == 0:
            for policy in policies:
                policy.handle(HomeLoad(number % 3, now_s, (number * 7919 % 13) * 0.003))
        recompute_s = waits.choice((0.0, 0.0, 0.002, 0.03))
        event = Miss(block, now_s, depth, length, parent, home=block % 3, recompute_s=recompute_s)
        same(policies, Hits(block, now_s) if block in policies[0] else event)
    for policy in policies:
        policy.check_all()
    ours, reference = (policy.policy for policy in policies)
    assert isinstance(ours, Reuse)
    assert isinstance(reference, Reuse)
    assert [ours.explain(key) for key in range(30)] == [reference.explain(key) for key in range(30)]


@pytest.mark.parametrize("seed", rest_slow(range(2), range(4)))
def test_same_decisions_whatever_happens(
    compiled: native.MakeCore, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Tenants, pins, losses, reports that stand for many requests, and either sizes or reports that were lost
    and a short memory: of a parent that nobody reported the size is guessed."""
    monkeypatch.setattr(module, "MOST_APPRAISERS", 2)
    if seed % 2 == 0:
        monkeypatch.setattr(module, "HISTORY_BLOCKS", 300)
    chooser = random.Random(seed)

    def size_of(key: int) -> int:
        return 1 + key % 9 if seed % 2 else 1

    policies = both(compiled, monkeypatch, capacity_blocks=40, capacity_slots=170 if seed % 2 else None)
    for number, (block, now_s, depth, length, parent) in enumerate(accesses("rag", seed, 200)):
        what = chooser.random()
        held = list(policies[0])
        if what < 0.02 and held:
            same(policies, Lost(chooser.choice(held), now_s))
        elif what < 0.04:
            same(policies, Found(found := chooser.randrange(3000), now_s, size_of(found)))
        elif what < 0.06 and held:
            same(policies, Pin(chooser.choice(held), now_s))
        elif what < 0.09:
            for key in list(policies[0].policy.pinned):
                same(policies, Unpin(key, now_s))
        elif what < 0.12:
            same(policies, Demoted(chooser.choice(held or [0]) if what < 0.11 else block, now_s))
        elif what < 0.2 and seed % 2 == 0:
            continue
        times = chooser.choice((1, 1, 1, 2, 40))
        tenant = block % 4 if number > 300 else 0
        miss = Miss(block, now_s, depth, length, parent, times, tenant=tenant, fragments=size_of(block))
        same(policies, Hits(block, now_s, times) if block in policies[0] else miss)
    for policy in policies:
        policy.check_all()
    ours, reference = (policy.policy.core for policy in policies)  # type: ignore[attr-defined]
    assert ours.known() == reference.known()
    assert ours.known() < 400 or seed % 2


@pytest.mark.parametrize("pure", [False, True])
def test_what_is_demoted_leaves_with_the_last_of_its_chain_first(
    compiled: native.MakeCore, monkeypatch: pytest.MonkeyPatch, pure: bool
) -> None:
    policy = both(compiled, monkeypatch, capacity_blocks=9)[pure]
    for depth in range(4):
        policy.handle(Miss(depth, 0.0, depth, 4, depth - 1 if depth else None))
    assert not policy.handle(Demoted(2, 1.0))  # the block behind it is wanted
    assert [policy.handle(Demoted(key, 1.0)) for key in (3, 2)] == [(Evict(3, 0.0),), (Evict(2, 0.0),)]
    assert set(policy) == {0, 1}
    policy.handle(Pin(1, 2.0))
    assert not policy.handle(Demoted(1, 2.0))
    assert policy.handle(Miss(2, 3.0, 2, 4, 1)) == (Admit(2),)


@pytest.mark.parametrize("part", ["learning", "memory", "lookahead", "prefix", "worth"])
def test_same_decisions_without_a_part(
    compiled: native.MakeCore, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    policies = both(compiled, monkeypatch, capacity_blocks=50, parts=Parts(**{part: False}))
    for block, now_s, depth, length, parent in accesses("chat", 12, 120):
        event = Miss(block, now_s, depth, length, parent)
        same(policies, Hits(block, now_s) if block in policies[0] else event)


def test_numbers_of_forgotten_blocks_are_used_again(
    compiled: native.MakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = compiled(20, 0, 100, 1.01, True)
    core.refresh(0.0, Learner())
    core.set_worths([0.01], [0])
    for number in range(20_000):
        core.ask(number, number - 1 if number % 10 else None, False, 0, 1, 1)
        if number % 64 == 0:
            core.end_tick()
    assert core.known() <= 100 + 64
    blocks_made = core.made()  # type: ignore[attr-defined]
    assert blocks_made < 1000


def numbers_in_use(core: native.Core) -> int:
    """Blocks of which anything is remembered, or that others name as their parent."""
    if isinstance(core, Reference):
        return len(core._history._alive)
    return core.made()  # type: ignore[attr-defined, no-any-return]


def circles(core: native.Core) -> None:
    """A is known, C names it as its parent; A is forgotten, comes anew, and names C."""
    others = iter(range(1_000_000, 2_000_000))

    def forget(count: int) -> None:
        for other in islice(others, count):
            core.ask(other, None, False, 0, 1, 1)
        core.end_tick()

    for first in range(0, 5_000, 50):
        pairs = [(2 * at, 2 * at + 1) for at in range(first, first + 50)]
        for one, _ in pairs:
            core.ask(one, None, False, 0, 1, 1)
        forget(30)
        for one, other in pairs:
            core.ask(other, one, False, 0, 1, 1)
        forget(70)
        for one, other in pairs:
            core.ask(one, other, False, 0, 1, 1)
        forget(300)


def endless_chain(core: native.Core) -> None:
    """Each block names the one before it; all but the last of them are forgotten."""
    for number in range(5_000):
        core.ask(number, number - 1 if number else None, False, 0, 1, 1)
        if number % 50 == 0:
            core.end_tick()


@pytest.mark.parametrize("hostile", [circles, endless_chain])
@pytest.mark.parametrize("pure", [False, True])
def test_whatever_blocks_name_as_their_parents_no_more_is_remembered(
    compiled: native.MakeCore, hostile: Callable[[native.Core], None], pure: bool
) -> None:
    core = (Reference if pure else compiled)(20, 0, 100, 1.01, True)
    core.refresh(0.0, Learner())
    core.set_worths([0.01], [0])
    gc.disable()  # it would find circles; until then they take room
    try:
        hostile(core)
        assert numbers_in_use(core) < 1000
    finally:
        gc.enable()


@pytest.mark.parametrize("slots", [0, 400])
def test_the_same_is_wanted_in_room_that_changes(compiled: native.MakeCore, slots: int) -> None:
    chooser = random.Random(slots)
    cores = [make(200, slots, 10_000, 1.01, True) for make in (compiled, Reference)]
    for core in cores:
        core.refresh(0.0, Learner())
        core.set_worths([0.01], [0])
    for step in range(4_000):
        if step % 400 == 0:
            blocks = chooser.choice((20, 50, 100, 200))
            popular, loop = chooser.choice((30, 100, 400)), chooser.choice((0, 60, 130, 260))
            for core in cores:
                core.resize(blocks, slots * blocks // 200)
        key = step % loop if loop else min(chooser.randrange(popular), chooser.randrange(400))
        said = [core.ask(key, None, False, 0, 2, 1) for core in cores]
        assert said[0] == said[1], step
        if step % 50 == 0:
            wanted = [[core.is_wanted(key) for key in range(400)] for core in cores]
            assert wanted[0] == wanted[1], step
            assert sum(wanted[0]) <= blocks


def test_what_cannot_be_is_refused(compiled: native.MakeCore) -> None:
    core = compiled(20, 0, 100, 1.01, True)
    with pytest.raises(ValueError, match="place"):
        core.ask(1, None, False, 0, 1, 1)
    core.set_worths([0.01], [0])
    with pytest.raises(ValueError, match="times"):
        core.ask(1, None, False, 0, 1, 0)
    with pytest.raises(KeyError):
        core.leave(1)
    for blocks, slots in ((0, 0), (20, 20)):
        with pytest.raises(ValueError, match="capacities"):
            core.resize(blocks, slots)
    with pytest.raises(TypeError):
        core.ask([], None, False, 0, 1, 1)  # type: ignore[arg-type]
    assert core.ask(2, 1, False, 0, 1, 1) == native.UNKNOWN
    assert core.hits(1, 1) == native.UNKNOWN
