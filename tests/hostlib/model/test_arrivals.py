"""When requests reach a node: at their times, or a think time after the answers that they wait for."""

import asyncio

from hostlib.model.arrivals import Arrival, in_time
from workload.trace import InSession, Request


def request(number: int, arrival_s: float, after: tuple[int, ...] = (), think_s: float = 0.0) -> Request:
    return Request(arrival_s, 1, 1, (number,), place=InSession(0, number, after, think_s))


async def played(requests: list[Request], answer_s: float) -> list[tuple[int, float]]:
    """Number and time of each request; each is answered `answer_s` after it came."""
    loop = asyncio.get_running_loop()
    start_s, came = loop.time(), []

    def answer(arrival: Arrival) -> None:
        loop.call_later(answer_s, arrival.answered)

    async for arrival in in_time(requests, start_s):
        came.append((arrival.request.blocks[0], arrival.request.arrival_s))
        answer(arrival)
    return came


def test_requests_come_at_their_times() -> None:
    plain = [Request(0.01, 1, 1, (1,)), Request(0.02, 1, 1, (2,))]
    assert asyncio.run(played(plain, 0.0)) == [(1, 0.01), (2, 0.02)]


def test_a_follower_comes_its_think_time_after_the_answer_and_delays_nobody_else() -> None:
    requests = [request(0, 0.0), request(1, 0.01, (0,), 0.05), request(2, 0.02)]
    came = dict(asyncio.run(played(requests, 0.1)))
    assert list(came) == [0, 2, 1]
    assert came[2] == 0.02
    assert came[1] >= 0.15


def test_it_waits_for_all_that_it_names() -> None:
    requests = [request(0, 0.0), request(1, 0.06), request(2, 0.07, (0, 1), 0.0)]
    assert dict(asyncio.run(played(requests, 0.03)))[2] >= 0.09


def test_answers_that_are_played_elsewhere_are_not_waited_for() -> None:
    assert asyncio.run(played([request(5, 0.02, (4,), 9.0)], 0.0)) == [(5, 0.02)]
