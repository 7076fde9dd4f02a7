from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance import bmv2
from tests.v1model.p4runtime import engines
from tests.v1model.p4runtime.controller import Controller
from tests.v1model.p4runtime.engines import CPU_PORT, Artifacts, RunningSwitch
from v1model.p4runtime.engine import EmbeddedEngine
from v1model.p4runtime.pipeline import Pipeline
from v1model.protos.p4.v1 import p4runtime_pb2

BOTH = pytest.mark.parametrize("engine", ["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])


@pytest.fixture
def engine() -> str:
    """Tests run on the embedded switch; those with @BOTH on BMv2 too."""
    return "embedded"


@pytest.fixture(scope="session")
def embedded_artifacts() -> Artifacts:
    return engines.compile_embedded()


@pytest.fixture(scope="module")
def pipelines(embedded_artifacts: Artifacts) -> Iterator[tuple[Pipeline, Pipeline]]:
    """Two switches without ports that run control.p4."""
    engine = EmbeddedEngine({}, CPU_PORT)
    config = p4runtime_pb2.ForwardingPipelineConfig(p4info=embedded_artifacts.p4info)
    one, other = (engine.load(embedded_artifacts.device_config) for _ in range(2))
    yield Pipeline(config, one), Pipeline(config, other)
    one.close()
    other.close()


@pytest.fixture(scope="session")
def bmv2_artifacts(tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    return engines.compile_bmv2(tmp_path_factory.mktemp("bmv2"))


@pytest.fixture
def switch(engine: str, request: pytest.FixtureRequest) -> Iterator[RunningSwitch]:
    """A fresh switch without a pipeline."""
    if engine == "bmv2" and not bmv2.is_present():
        pytest.skip("p4c-bm2-ss and simple_switch_grpc are not on PATH")
    artifacts = request.getfixturevalue(f"{engine}_artifacts")
    with getattr(engines, engine)(artifacts) as running:
        yield running


@pytest.fixture
def bare_controller(switch: RunningSwitch) -> Iterator[Controller]:
    """A primary on a switch without a pipeline."""
    controller = Controller(switch.address, switch.artifacts.p4info)
    yield controller
    controller.close()


@pytest.fixture
def controller(switch: RunningSwitch, bare_controller: Controller) -> Controller:
    """A primary on a switch that runs control.p4."""
    bare_controller.set_pipeline(switch.artifacts)
    return bare_controller
