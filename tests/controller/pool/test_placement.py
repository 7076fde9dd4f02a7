"""Placement: which switch on the way keeps a block."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from controller.operations import HotMiss
from controller.pool.placement import View, admits

HOME, FAR_HOME = IPv4Address("10.0.0.9"), IPv4Address("10.0.0.10")
READERS_LEAF = View(frozenset({1, 2, 3}), frozenset())
HOME_LEAF = View(frozenset({1, 2}), frozenset({HOME}))
SPINE = View(frozenset(), frozenset())
TRUNK = 7


def miss(*waiting_ports: int, home: IPv4Address = HOME) -> HotMiss:
    waiters = sum(1 << port for port in waiting_ports)
    return HotMiss(0, bytes(16), 0, 0, 1, 4, 0, 0, 1, waiters, home)


@pytest.mark.parametrize(
    ("view", "report", "kept_by"),
    [
        (SPINE, miss(TRUNK), {"spine", "auto", "everywhere"}),
        (READERS_LEAF, miss(1), {"leaf", "everywhere"}),
        (READERS_LEAF, miss(1, 2), {"leaf", "auto", "everywhere"}),
        (READERS_LEAF, miss(TRUNK), {"everywhere"}),
        (READERS_LEAF, miss(), {"leaf", "everywhere"}),
        (HOME_LEAF, miss(TRUNK), {"everywhere"}),
        (HOME_LEAF, miss(1, TRUNK), {"leaf", "spine", "auto", "everywhere"}),
        (HOME_LEAF, miss(1, home=FAR_HOME), {"leaf", "everywhere"}),
    ],
)
def test_who_keeps_a_block(view: View, report: HotMiss, kept_by: set[str]) -> None:
    assert {
        placement for placement in ("leaf", "spine", "auto", "everywhere") if admits(placement, view, report)
    } == kept_by


@pytest.mark.parametrize("placement", ["leaf", "spine", "auto", "everywhere"])
def test_a_switch_with_nodes_and_stores_keeps_all_that_its_nodes_want(placement: str) -> None:
    for ports in ((), (1,), (1, 2)):
        assert admits(placement, HOME_LEAF, miss(*ports))
