from collections import OrderedDict
from random import Random

from workload.recency import Recency


def test_keys_leave_in_the_order_of_an_ordered_dictionary() -> None:
    draw = Random(3)
    order, expected = Recency[int](), OrderedDict[int, None]()
    for _ in range(30_000):  # many times as many uses as turns are kept
        key = int(draw.expovariate(0.05))
        assert (key in order) == (key in expected)
        kind = draw.random()
        if kind < 0.4:
            order.use(key)
            expected[key] = None
            expected.move_to_end(key)
        elif kind < 0.8:
            used = order.used(key)
            assert used == (key in expected)
            if used:
                expected.move_to_end(key)
        elif kind < 0.9 and key in expected:
            order.remove(key)
            del expected[key]
        elif expected:
            assert order.evict() == expected.popitem(last=False)[0]
        assert len(order) == len(expected)
    assert set(order.keys()) == set(expected)
    assert [order.evict() for _ in range(len(order))] == list(expected)
