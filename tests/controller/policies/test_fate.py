import pytest

from controller.policies.fate import Fate, fate_of
from workload.cost import CostModel

COST = CostModel()
TRANSFER_S = COST.fetch_s(COST.block_bytes, 200e9)


@pytest.mark.parametrize(
    ("chance", "held_elsewhere", "transfer_s", "fate"),
    [
        (0.9, True, TRANSFER_S, Fate.DROP),
        (0.9, False, TRANSFER_S, Fate.DEMOTE),
        (0.01, False, TRANSFER_S, Fate.STUB),
        (0.9, False, 10.0, Fate.STUB),
        (None, False, TRANSFER_S, Fate.DEMOTE),
        (0.0, False, TRANSFER_S, Fate.STUB),
    ],
)
def test_fate(chance: float | None, held_elsewhere: bool, transfer_s: float, fate: Fate) -> None:
    assert fate_of(chance, 3, held_elsewhere, COST, transfer_s) is fate


def test_deep_blocks_are_worth_demoting_sooner() -> None:
    chance = TRANSFER_S / COST.block_prefill_s(0) * 0.9
    assert fate_of(chance, 0, False, COST, TRANSFER_S) is Fate.STUB
    assert fate_of(chance, 200, False, COST, TRANSFER_S) is Fate.DEMOTE
