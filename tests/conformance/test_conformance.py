"""Each case is NAME.p4 with NAME.stf: entries, packets, and what comes out. The embedded switch runs
them always, BMv2, which is the reference, where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import bmv2
from v1model.stf.executor import Executor
from v1model.stf.parser import parse
from v1model.stf.target import EmbeddedTarget

NOT_ON_BMV2 = "# not on BMv2: "
CASES = sorted(Path(__file__).parent.rglob("*.stf"))
IDS = [str(case.relative_to(Path(__file__).parent).with_suffix("")) for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_on_the_embedded_switch(case: Path) -> None:
    with EmbeddedTarget(case.with_suffix(".p4")) as target:
        Executor(target).run(parse(case.read_text()))


@pytest.mark.bmv2
@pytest.mark.skipif(not bmv2.is_present(), reason="p4c-bm2-ss and simple_switch_grpc are not on PATH")
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_on_bmv2(case: Path) -> None:
    text = case.read_text()
    if text.startswith(NOT_ON_BMV2):
        pytest.skip(text.splitlines()[0].removeprefix("# "))
    with bmv2.Bmv2Target(case.with_suffix(".p4")) as target:
        Executor(target).run(parse(text))
