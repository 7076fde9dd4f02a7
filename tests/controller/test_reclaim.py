"""Reclaims: every block ends, complete or given up, whatever is lost on the way."""

from __future__ import annotations

from ipaddress import IPv4Address

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.operations import Answer, Reclaim
from controller.reclaim import Finished, Reclaims
from hostlib import wire
from tests.controller.test_pool import key

STORE = IPv4Address("10.0.0.9")


def answer(request: Reclaim, op: int = wire.OP_PUT_ACK, source: IPv4Address = STORE) -> Answer:
    message = wire.Message(op, request.key, request.fragment, request.fragments, sequence=request.sequence)
    return Answer(source, message)


@settings(deadline=None)  # machines that run tests are busy
@given(
    blocks=st.integers(1, 5), fragments=st.integers(1, 6), window=st.integers(1, 8),
    fates=st.lists(st.sampled_from(["arrives", "arrives", "lost", "twice", "refused"]), max_size=60),
)  # fmt: skip
def test_every_transfer_ends_and_only_a_whole_one_is_complete(
    blocks: int, fragments: int, window: int, fates: list[str]
) -> None:
    reclaims = Reclaims(3, window, 0.1, 3)
    started = [n for n in range(blocks) if reclaims.start(key(n), fragments, STORE)]
    assert len(started) == min(3, blocks)
    arrived: set[tuple[bytes, int]] = set()
    finished: list[Finished] = []
    now_s, fate = 0.0, iter(fates)
    while len(reclaims):
        requests, given_up = reclaims.poll(now_s)
        assert reclaims.fragments_in_flight <= window
        finished += given_up
        for request in requests:
            what = next(fate, "lost")
            if what == "refused":
                finished += filter(None, [reclaims.answered(answer(request, wire.OP_NOT_FOUND))])
            for _ in range({"arrives": 1, "twice": 2}.get(what, 0)):
                arrived.add((request.key, request.fragment))
                finished += filter(None, [reclaims.answered(answer(request))])
        now_s += 0.1
        assert now_s < 60
    assert sorted(end.key for end in finished) == sorted(key(n) for n in started)
    for end in finished:
        if end.complete:
            assert {(end.key, fragment) for fragment in range(fragments)} <= arrived


def test_answers_of_others_or_of_an_earlier_reclaim_do_not_count() -> None:
    reclaims = Reclaims(1, 8, 0.1, 3)
    reclaims.start(key(1), 1, STORE)
    (old,), _ = reclaims.poll(0.0)
    reclaims.cancel(key(1))
    reclaims.start(key(1), 1, STORE)
    (new,), _ = reclaims.poll(0.0)
    assert reclaims.answered(answer(old)) is None
    assert reclaims.answered(answer(new, source=IPv4Address("10.0.0.1"))) is None
    assert reclaims.answered(answer(new, op=wire.OP_GET)) is None
    assert reclaims.answered(answer(new)) == Finished(key(1), complete=True)


def test_the_wait_for_an_answer_doubles() -> None:
    reclaims = Reclaims(1, 1, 1.0, 3)
    reclaims.start(key(1), 1, STORE)
    sent_at = [second for second in range(20) if reclaims.poll(float(second))[0]]
    assert sent_at == [0, 1, 3]
    assert len(reclaims) == 0
