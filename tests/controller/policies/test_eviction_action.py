import pytest

from controller.policies.eviction_action import EvictionAction, eviction_action

RECOMPUTE_S, TRANSFER_S = 0.05, 0.003


@pytest.mark.parametrize(
    ("chance", "held_elsewhere", "transfer_s", "action"),
    [
        (0.9, True, TRANSFER_S, EvictionAction.DROP),
        (0.9, False, TRANSFER_S, EvictionAction.DEMOTE),
        (0.01, False, TRANSFER_S, EvictionAction.STUB),
        (0.9, False, 10.0, EvictionAction.STUB),
        (None, False, TRANSFER_S, EvictionAction.DEMOTE),
        (0.0, False, TRANSFER_S, EvictionAction.STUB),
    ],
)
def test_eviction_action(
    chance: float | None, held_elsewhere: bool, transfer_s: float, action: EvictionAction
) -> None:
    assert eviction_action(chance, RECOMPUTE_S, transfer_s, held_elsewhere) is action
