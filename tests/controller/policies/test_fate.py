import pytest

from controller.policies.fate import Fate, fate_of

RECOMPUTE_S, TRANSFER_S = 0.05, 0.003


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
    assert fate_of(chance, RECOMPUTE_S, transfer_s, held_elsewhere) is fate
