import pytest

from workload.cost import CostModel
from workload.scale import ScaleError, ScaleModel


def test_default_block_and_link() -> None:
    scale = ScaleModel()
    block_bytes = scale.block_bytes(CostModel().block_bytes)
    assert block_bytes == 16384
    assert scale.rate_bit_s(200e9) == 40e6
    real_s = CostModel().block_bytes * 8 / 200e9
    assert block_bytes * 8 / scale.rate_bit_s(200e9) == pytest.approx(real_s, rel=0.03)


def test_small_blocks_keep_a_fragment() -> None:
    assert ScaleModel(sigma=1e9).block_bytes(80e6) == 512


def test_conversions_undo_each_other() -> None:
    scale = ScaleModel(sigma=700.0, speed=3.0)
    assert scale.real_s(scale.duration_s(12.0)) == pytest.approx(12.0)
    assert scale.real_bytes(100) == 70_000


def test_speed_keeps_transfer_and_compute_in_proportion() -> None:
    slow, fast = ScaleModel(), ScaleModel(speed=5.0)
    assert slow.duration_s(1.0) / fast.duration_s(1.0) == fast.rate_bit_s(1e9) / slow.rate_bit_s(1e9)


@pytest.mark.parametrize(
    "wrong", [{"sigma": 0.5}, {"sigma": float("nan")}, {"speed": 0.0}, {"speed": float("inf")}]
)
def test_impossible_scales(wrong: dict[str, float]) -> None:
    with pytest.raises(ScaleError):
        ScaleModel(**wrong)  # type: ignore[arg-type]
