"""What a router makes of the reports of nodes and switches."""

from __future__ import annotations

import pytest

from hostlib.peer.cluster_state import ClusterState
from hostlib.protocol.errors import LineError
from hostlib.protocol.members import Members
from hostlib.protocol.wire import VALUE_FRAME_BYTES, fragment_count
from workload.cost import make_cost_model
from workload.keys import KeySpace
from workload.scale import ScaleModel
from workload.trace import Request

HOMES = ["10.0.0.8", "10.0.0.9"]
COST, SCALE, KEY_SPACE = make_cost_model(), ScaleModel(20_000), KeySpace()
LINK_BIT_S = 1e7
FRAGMENT_S = 8 * VALUE_FRAME_BYTES / LINK_BIT_S
BLOCK_S = fragment_count(SCALE.block_bytes(COST.block_bytes)) * FRAGMENT_S
REQUEST = Request(0.0, 512 * 4, 1, (1, 2, 3, 4))
KEYS = list(KEY_SPACE.chain(REQUEST.blocks))
HEX = [key.hex() for key in KEYS]


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def state(clock: Clock) -> ClusterState:
    return ClusterState(2, Members.of(HOMES), KEY_SPACE, COST, SCALE, LINK_BIT_S, clock)


def test_nodes_hold_what_they_say_until_they_say_it_is_gone() -> None:
    cluster = state(Clock())
    cluster.node_reports(0, {"held": HEX[:3]})
    cluster.node_reports(1, {"held": HEX[1:]})
    assert [cluster.held_blocks(node, REQUEST) for node in (0, 1)] == [3, 0]
    cluster.node_reports(0, {"gone": [HEX[1]]})
    assert cluster.held_blocks(0, REQUEST) == 1


def test_storage_holds_what_was_stored_there_or_lies_in_a_pool() -> None:
    cluster = state(Clock())
    cluster.stored(KEYS[:1])
    cluster.node_reports(0, {"stored": [HEX[1]]})
    cluster.switch_reports("s1", {"held": [HEX[2]]})
    assert cluster.stored_blocks(REQUEST) == 3
    assert cluster.pooled_blocks() == 1
    cluster.switch_reports("s1", {"gone": [HEX[2]]})
    cluster.node_reports(1, {"lost": [HEX[1]]})
    assert cluster.stored_blocks(REQUEST) == 1


def test_a_transfer_waits_for_links_and_homes_and_less_as_time_passes() -> None:
    clock = Clock()
    cluster = state(clock)
    cluster.stored(KEYS)
    assert cluster.transfer_s(0, REQUEST, 0, 4) == pytest.approx(4 * BLOCK_S)
    cluster.node_reports(0, {"waiting_fragments": 1000, "home_s": dict.fromkeys(HOMES, 50.0)})
    assert cluster.transfer_s(0, REQUEST, 3, 4) == pytest.approx(50.0 + BLOCK_S)
    assert cluster.transfer_s(1, REQUEST, 3, 4) == pytest.approx(BLOCK_S)
    cluster.switch_reports("s1", {"held": HEX})
    assert cluster.transfer_s(0, REQUEST, 3, 4) == pytest.approx(1000 * FRAGMENT_S + BLOCK_S)
    clock.now_s += 10.0
    assert cluster.transfer_s(0, REQUEST, 3, 4) == pytest.approx(BLOCK_S)


@pytest.mark.parametrize(
    "message",
    [
        {"held": 7},
        {"held": ["zz"]},
        {"waiting_fragments": "x"},
        {"waiting_fragments": 10**400},
        {"home_s": [1]},
        {"home_s": {"a": "b"}},
    ],
)
def test_nonsense_is_refused(message: dict[str, object]) -> None:
    with pytest.raises(LineError):
        state(Clock()).node_reports(0, message)
