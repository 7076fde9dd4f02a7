"""The generator and the echo on real cables, for a moment. Needs root."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.bench.switch.cables import Cables
from experiments.bench.switch.engines import Echo
from experiments.bench.switch.errors import BenchError
from experiments.bench.switch.load import LoadGenerator, Trial
from experiments.bench.switch.plan import encode
from experiments.bench.switch.workloads import NODES, WORKLOADS, Workload

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
CPU = str(min(os.sched_getaffinity(0)))
RATE_PER_S, SECONDS = 2000, 0.1


def trial(**changed: float) -> Trial:
    seen = {
        "rate_per_s": 1000, "seconds": 1.0, "sent": 1000, "failed": 0, "answered": 1000, "late": 0,
        "answered_while_sending": 990, "repeated": 0, "forwarded": 0, "own_drops": 0, "idle_share": 0.5,
    }  # fmt: skip
    return Trial(**{**seen, **changed})  # type: ignore[arg-type]


def test_loss_below_a_thousandth_is_no_loss() -> None:
    assert trial(answered=999).lossless
    assert not trial(answered=998).lossless
    assert not trial(failed=2).lossless
    assert not trial(sent=0, answered=0).lossless


def test_a_generator_that_sends_or_receives_too_little_did_not_keep_the_rate() -> None:
    assert trial(sent=990).sent_at_rate
    assert not trial(sent=989).sent_at_rate
    assert not trial(own_drops=1).sent_at_rate


@pytest.fixture(scope="module")
def echo() -> Iterator[Echo]:
    with Echo(CPU) as running:
        yield running


@needs_root
@pytest.mark.root
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_the_echo_answers_every_workload(workload: Workload, echo: Echo, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    plan.write_bytes(encode(workload.make_plan(1)))
    echo.prepare(workload)
    seen = LoadGenerator(echo.cables, CPU).run(plan, workload.cables, RATE_PER_S, SECONDS)
    assert 0 < seen.sent <= RATE_PER_S * SECONDS  # on a busy machine it may not come to all
    assert (seen.answered + seen.late, seen.repeated) == (seen.sent, 0)
    assert 0 < seen.p50_us <= seen.p99_us
    expected = {"misses": seen.sent, "puts": seen.sent, "merges": seen.sent / NODES}
    assert abs(seen.forwarded - expected.get(workload.name, 0)) < 1  # the last merge may not be complete


@needs_root
@pytest.mark.root
def test_an_engine_that_keeps_silent_loses_everything(echo: Echo, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    plan.write_bytes(encode(WORKLOADS[0].make_plan(1)))
    echo.restart(("1:1:0",), echo.cables.engine_ends[:2])
    seen = LoadGenerator(echo.cables, CPU).run(plan, WORKLOADS[0].cables, RATE_PER_S, SECONDS)
    assert seen.sent > 0
    assert seen.answered == 0
    assert not seen.lossless


@needs_root
@pytest.mark.root
def test_a_rule_for_a_port_that_is_not_there(echo: Echo) -> None:
    with pytest.raises(BenchError, match="rule: port 3 of 1"):
        echo.restart(("0:3:0",), echo.cables.engine_ends[:1])


@needs_root
@pytest.mark.root
def test_cables_leave_nothing_behind() -> None:
    with Cables(1) as cables:
        inside = Path(f"/proc/{cables.engine.pid}/ns/net").stat().st_ino
        sleeper = cables.engine.popen(("sleep", "infinity"), CPU)
        assert sleeper.poll() is None
    assert sleeper.poll() is not None
    listed = subprocess.run(
        ["lsns", "-t", "net", "-n", "-o", "NS"], capture_output=True, text=True, check=True
    )
    assert str(inside) not in listed.stdout.split()
