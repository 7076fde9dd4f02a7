"""Medians, spreads and ratios of rounds."""

import json
import math

from experiments.bench.switch.measure import Measurement
from experiments.bench.switch.summary import Figure, figure, figures, ratios, to_json


def measured(lossless: float, overload: float = 50.0, p50: float = 1.0) -> Measurement:
    return Measurement(
        lossless_per_s=lossless,
        overload_per_s=overload,
        offered_per_s=1000.0,
        engine_busy=1.0,
        p50_us=p50,
        p99_us=9.0,
        generator_limited=False,
    )


def test_a_figure_is_the_median_and_the_range() -> None:
    assert figure([3.0, 1.0, 2.0]) == Figure(2.0, 1.0, 3.0)


def test_what_is_not_a_number_does_not_count() -> None:
    assert figure([math.nan, 4.0]) == Figure(4.0, 4.0, 4.0)
    assert math.isnan(figure([math.nan]).median)


def test_every_field_of_a_measurement_has_a_figure() -> None:
    of = figures([measured(10), measured(30)])
    assert of["lossless_per_s"] == Figure(20.0, 10.0, 30.0)
    assert of["generator_limited"].high == 0.0


def test_ratios_compare_within_a_round() -> None:
    """A machine that slows down in one round slows both."""
    embedded, echo = [measured(80), measured(40)], [measured(100), measured(50)]
    assert ratios(embedded, echo, "lossless_per_s") == Figure(0.8, 0.8, 0.8)


def test_a_ratio_to_nothing_is_no_number() -> None:
    assert math.isnan(ratios([measured(1)], [measured(0)], "lossless_per_s").median)


def test_json_has_all_engines_ratios_and_rounds() -> None:
    rounds = {"hits": {"echo": [measured(100, p50=math.nan)], "embedded": [measured(90)]}}
    text = json.dumps(to_json(rounds), allow_nan=False)
    embedded = json.loads(text)["hits"]["embedded"]
    assert embedded["lossless_ratio_to"]["echo"]["median"] == 0.9
    assert embedded["overload_ratio_to"]["echo"]["median"] == 1.0
    assert embedded["rounds"][0]["lossless_per_s"] == 90
    assert json.loads(text)["hits"]["echo"]["p50_us"]["median"] is None
