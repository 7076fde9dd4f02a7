"""The picture of what a byte costs."""

from pathlib import Path

from experiments.bench.values.measure import Costs, parts
from experiments.bench.values.picture import draw


def test_each_part_and_its_limit_is_named(tmp_path: Path) -> None:
    rounds: dict[int, list[Costs]] = {
        size: [dict.fromkeys(parts(), 100.0 * round_ / size) for round_ in (1, 2, 3)] for size in (512, 8192)
    }
    text = draw(rounds, tmp_path).read_text()
    for label in ("switch", "bare echo", "node", "storage node", "limit: bare UDP", "8,192"):
        assert f">{label}<" in text
