"""Reclaims: every block ends, sent, held already or given up, whatever is lost on the way."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.block_id import key_of, tenant_of
from controller.operations import Answer, Reclaim
from controller.pool.reclaim import End, Finished, Reclaims
from hostlib.protocol import wire
from tests.controller.pool_world import key

if TYPE_CHECKING:
    from collections.abc import Iterator

STORE = IPv4Address("10.0.0.9")


def answer(
    request: Reclaim, op: int = wire.OP_PUT_ACK, source: IPv4Address = STORE, flags: int = 0
) -> Answer:
    message = wire.Message(
        op, key_of(request.key), request.fragment, request.fragments, flags=flags,
        sequence=request.sequence, tenant=tenant_of(request.key),
    )  # fmt: skip
    return Answer(source, message)


class Home:
    """What a storage node has of each block; it may forget what is not whole."""

    def __init__(self, fragments: int, held: set[bytes]) -> None:
        self.fragments, self.whole = fragments, set(held)
        self.parts: dict[bytes, set[int]] = {}

    def put(self, request: Reclaim) -> Answer:
        parts = self.parts.setdefault(request.key, set())
        parts.add(request.fragment)
        if len(parts) == self.fragments:
            self.whole.add(request.key)
        held = request.key in self.whole
        return answer(request, flags=wire.FLAG_HELD if held else 0)


WHAT_HAPPENS = ["arrives", "arrives", "lost", "unacknowledged", "twice", "refused", "forgotten"]


@given(
    blocks=st.integers(1, 5), fragments=st.integers(1, 6), window=st.integers(1, 8),
    held=st.sets(st.integers(0, 4)), happenings=st.lists(st.sampled_from(WHAT_HAPPENS), max_size=60),
)  # fmt: skip
def test_every_transfer_ends_and_only_what_the_home_holds_counts_as_saved(
    blocks: int, fragments: int, window: int, held: set[int], happenings: list[str]
) -> None:
    reclaims, home = Reclaims(3, window, 0.1, 3), Home(fragments, {key(n) for n in held})
    started = [n for n in range(blocks) if reclaims.start(key(n), fragments, STORE, 0.0)]
    assert len(started) == min(3, blocks)
    finished: list[Finished] = []
    now_s, happening = 0.0, iter(happenings)
    while len(reclaims):
        requests, given_up = reclaims.poll(now_s)
        assert requests or given_up  # as it was due
        assert reclaims.fragments_in_flight <= window
        finished += given_up
        for request in requests:
            for end in carry(reclaims, home, request, next(happening, "lost")):
                assert end.end in (End.FAILED, End.NOT_WHOLE) or end.key in home.whole
                finished.append(end)
        now_s = max(now_s, reclaims.due_s) if len(reclaims) else now_s
        assert now_s < 60
    assert sorted(end.key for end in finished) == sorted(key(n) for n in started)


def carry(reclaims: Reclaims, home: Home, request: Reclaim, what: str) -> Iterator[Finished]:
    """Let something happen to a request on its way; what it finishes."""
    if what == "refused":
        yield from filter(None, [reclaims.answered(answer(request, wire.OP_NOT_FOUND))])
    elif what == "forgotten":
        home.parts.pop(request.key, None)
    elif what != "lost":
        acknowledgement = home.put(request)
        for _ in range({"arrives": 1, "twice": 2}.get(what, 0)):
            yield from filter(None, [reclaims.answered(acknowledgement)])


def test_a_block_that_its_home_holds_costs_one_fragment() -> None:
    reclaims = Reclaims(1, 8, 0.1, 3)
    reclaims.start(key(1), 6, STORE, 0.0)
    (probe,), _ = reclaims.poll(0.0)
    assert probe.fragment == 0
    assert reclaims.poll(0.05) == ([], [])
    assert reclaims.answered(answer(probe, flags=wire.FLAG_HELD)) == Finished(key(1), End.HELD)
    assert reclaims.poll(1.0) == ([], [])


def test_the_rest_follows_when_the_home_does_not_hold_the_block() -> None:
    reclaims = Reclaims(1, 8, 0.1, 3)
    reclaims.start(key(1), 4, STORE, 0.0)
    (probe,), _ = reclaims.poll(0.0)
    assert reclaims.answered(answer(probe)) is None
    rest, _ = reclaims.poll(0.0)
    assert [request.fragment for request in rest] == [1, 2, 3]
    assert [reclaims.answered(answer(request)) for request in rest[:-1]] == [None, None]
    assert reclaims.answered(answer(rest[-1], flags=wire.FLAG_HELD)) == Finished(key(1), End.SENT)


def test_a_home_that_took_all_fragments_and_kept_none_has_not_got_the_block() -> None:
    reclaims = Reclaims(1, 8, 0.1, 3)
    reclaims.start(key(1), 2, STORE, 0.0)
    (probe,), _ = reclaims.poll(0.0)
    reclaims.answered(answer(probe))
    (rest,), _ = reclaims.poll(0.0)
    assert reclaims.answered(answer(rest)) == Finished(key(1), End.FAILED)


def test_answers_of_others_or_of_an_earlier_reclaim_do_not_count() -> None:
    reclaims = Reclaims(1, 8, 0.1, 3)
    reclaims.start(key(1), 1, STORE, 0.0)
    (old,), _ = reclaims.poll(0.0)
    reclaims.cancel(key(1))
    reclaims.start(key(1), 1, STORE, 0.1)
    (new,), _ = reclaims.poll(0.1)
    assert reclaims.answered(answer(old, flags=wire.FLAG_HELD)) is None
    assert reclaims.answered(answer(new, source=IPv4Address("10.0.0.1"), flags=wire.FLAG_HELD)) is None
    assert reclaims.answered(answer(new, op=wire.OP_GET)) is None
    assert reclaims.answered(answer(new, flags=wire.FLAG_HELD)) == Finished(key(1), End.SENT)


@pytest.mark.parametrize("held", [0, wire.FLAG_HELD])
def test_an_answer_for_a_block_that_is_not_reclaimed_is_ignored(held: int) -> None:
    assert Reclaims(1, 8, 0.1, 3).answered(answer(Reclaim(key(1), 0, 4, STORE, 1), flags=held)) is None


def test_the_wait_for_an_answer_doubles() -> None:
    reclaims = Reclaims(1, 1, 1.0, 3)
    reclaims.start(key(1), 1, STORE, 0.0)
    sent_at = [second for second in range(20) if reclaims.poll(float(second))[0]]
    assert sent_at == [0, 1, 3]
    assert len(reclaims) == 0
