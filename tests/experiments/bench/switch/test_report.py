"""The table at the end."""

import io

from rich.console import Console

from experiments.bench.switch.measure import Measurement
from experiments.bench.switch.report import print_report
from experiments.bench.switch.startup import ControlFigures


def test_rates_ratios_and_whether_the_generator_was_the_limit() -> None:
    fast = Measurement(90_000.0, 80_000.0, 500_000.0, 1.0, 12.0, 40.0, generator_limited=False)
    limit = Measurement(100_000.0, 95_000.0, 500_000.0, 1.0, 10.0, 30.0, generator_limited=True)
    control = {"embedded": ControlFigures(2.0, 0.3, 1.5, 0.02, 4000.0, 80_000_000, 17_700_000)}
    output = io.StringIO()
    print_report(
        Console(file=output, width=140),
        {"hits": {"echo": [limit], "embedded": [fast]}},
        control,
        sink_per_s=900_000,
    )
    text = output.getvalue()
    (row,) = (line for line in text.splitlines() if "embedded" in line and "90,000" in line)
    for cell in ("0.90", "80,000", "500,000", "12 / 40"):
        assert cell in row
    assert "sends 900,000 frames a second to a sink" in text
    assert "The load generator was the limit for: GET hits (echo)" in text
    assert "1.50 / 0.02" in text
