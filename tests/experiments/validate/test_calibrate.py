"""A machine as it is measured becomes the simulator's."""

import os
from dataclasses import astuple, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.validate.calibrate import (
    TYPICAL_READING,
    Calibrations,
    Reading,
    _Hosts,
    calibrate,
    drift,
    mean_of,
)
from simulator.machine_costs import MEASURED

HOSTS = ("node_alone_s", "store_alone_s", "node_chain_s", "store_chain_s")
CHANCE = ("slowdown", "rest_s")
"""Not times that a faster machine shortens."""


def test_the_usual_reading_is_the_usual_machine() -> None:
    assert astuple(TYPICAL_READING.costs()) == pytest.approx(astuple(MEASURED))


@given(st.floats(0.1, 10.0))
def test_a_machine_that_takes_so_much_longer_for_everything_has_all_costs_so_much_higher(
    times: float,
) -> None:
    reading = Reading(
        **{entry.name: times * getattr(TYPICAL_READING, entry.name) for entry in fields(Reading)}
    )
    assert reading.slower == pytest.approx(times)
    for entry in fields(MEASURED):
        usual = getattr(MEASURED, entry.name)
        expected = usual if entry.name in CHANCE else times * usual
        assert getattr(reading.costs(), entry.name) == pytest.approx(expected)


def test_each_cost_follows_its_own_measurement() -> None:
    rested = replace(TYPICAL_READING, get_rest_s=2 * TYPICAL_READING.get_rest_s, switch_rest_s=1e-4).costs()
    assert rested.store_cold_s == pytest.approx(2 * MEASURED.store_cold_s)
    assert (rested.host_wake_s, rested.entries_s) == pytest.approx((MEASURED.host_wake_s, MEASURED.entries_s))
    assert rested.switch_cold_s == 1e-4
    late = replace(TYPICAL_READING, entries_s=5e-3, entry_digest_s=1e-5).costs()
    assert (late.entries_s, late.entry_digest_s) == (5e-3, 1e-5)
    assert late.control(2.0)["digest_latency_s"] == pytest.approx(5e-3)
    assert late.table(2.0) == MEASURED.table(2.0) | {
        "host_wake_s": pytest.approx(2 * MEASURED.host_wake_s)  # 8.7 and 2.2 us are measured, 26 follows
    }


def test_drift_is_what_changed_most_between_before_and_after() -> None:
    hosts = replace(TYPICAL_READING, **{name: 1.3 * getattr(TYPICAL_READING, name) for name in HOSTS})
    assert drift(TYPICAL_READING, TYPICAL_READING) == 0
    assert drift(TYPICAL_READING, hosts) == pytest.approx(0.3)
    assert drift(hosts, replace(TYPICAL_READING, entries_s=9 * TYPICAL_READING.entries_s)) > 1
    assert mean_of((TYPICAL_READING, hosts)).node_chain_s == pytest.approx(
        1.15 * TYPICAL_READING.node_chain_s
    )


def test_between_two_plays_the_machine_is_measured_once() -> None:
    looks = iter([replace(TYPICAL_READING, entries_s=each) for each in (1.0, 2.0, 3.0)])
    calibrations = Calibrations(lambda: next(looks))
    plays = [calibrations.around(lambda: "played") for _ in range(2)]
    told_s = [[reading.entries_s for reading in readings] for _, readings in plays]
    assert told_s == [[1.0, 2.0], [2.0, 3.0]]
    assert Calibrations(None).around(lambda: "played") == ("played", ())


def test_hosts_are_measured() -> None:
    hosts = _Hosts.of(2, 20)
    assert min(hosts.node_s, hosts.store_s, hosts.get_s) > 0


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.timeout(120)
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for network namespaces")
def test_this_machine_can_be_measured() -> None:
    reading = calibrate()
    assert 0.05 < reading.slower < 50
    assert 0 < reading.entries_after_s(20) < 0.1
    assert reading.node_rest_s > 0
    assert 0 <= reading.switch_rest_s < 0.1
