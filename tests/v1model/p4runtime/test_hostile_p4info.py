"""A P4Info that is not its program's is refused, whatever it asks for."""

from __future__ import annotations

import pytest

from tests.v1model.p4runtime.engines import CPU_PORT, Artifacts
from v1model.dataplane import DataPlaneError
from v1model.p4runtime.engine import EmbeddedEngine
from v1model.p4runtime.pipeline import Pipeline
from v1model.p4runtime.references import MAX_TOLD
from v1model.p4runtime.values import StringCodec
from v1model.protos.p4.config.v1 import p4info_pb2
from v1model.protos.p4.v1 import p4runtime_pb2


@pytest.fixture
def info(embedded_artifacts: Artifacts) -> p4info_pb2.P4Info:
    """control.p4's, to be changed."""
    changed = p4info_pb2.P4Info()
    changed.CopyFrom(embedded_artifacts.p4info)
    return changed


def refused(artifacts: Artifacts, info: p4info_pb2.P4Info) -> str:
    """Why a pipeline with this P4Info can't be."""
    data_plane = EmbeddedEngine({}, CPU_PORT).load(artifacts.device_config)
    with pytest.raises(DataPlaneError) as caught:
        Pipeline(p4runtime_pb2.ForwardingPipelineConfig(p4info=info), data_plane)
    assert caught.value.code == "INVALID_ARGUMENT"
    return str(caught.value)


def test_types_that_double_at_each_level(embedded_artifacts: Artifacts, info: p4info_pb2.P4Info) -> None:
    """Thirty structs of two took all memory of the switch."""
    structs = info.type_info.structs
    for level in range(30):
        for name in ("left", "right"):
            structs[f"s{level}"].members.add(name=name).type_spec.struct.name = f"s{level + 1}"
    info.registers[0].type_spec.struct.name = "s0"
    assert "more than 65536 parts" in refused(embedded_artifacts, info)


def test_long_enums_that_many_name(embedded_artifacts: Artifacts, info: p4info_pb2.P4Info) -> None:
    for number in range(1_000):
        info.type_info.enums["e"].members.add(name=f"m{number}")
    for _ in range(100):
        info.digests[0].type_spec.tuple.members.add().enum.name = "e"
    assert "more than 65536 parts" in refused(embedded_artifacts, info)


def test_a_type_inside_itself(embedded_artifacts: Artifacts, info: p4info_pb2.P4Info) -> None:
    info.type_info.structs["s"].members.add(name="m").type_spec.struct.name = "s"
    info.registers[0].type_spec.struct.name = "s"
    assert "too deeply" in refused(embedded_artifacts, info)


@pytest.mark.parametrize("width", [-1, 0, 1 << 30])
def test_widths_that_no_value_has(embedded_artifacts: Artifacts, info: p4info_pb2.P4Info, width: int) -> None:
    """A register of int<0> could not be read, a digest of one ended all events."""
    info.digests[0].type_spec.bitstring.int.bitwidth = width
    assert f"{width} bits" in refused(embedded_artifacts, info)


@pytest.mark.parametrize("width", [-1, 1 << 30])
def test_translations_to_widths_that_no_value_has(
    embedded_artifacts: Artifacts, info: p4info_pb2.P4Info, width: int
) -> None:
    info.type_info.new_types["wide_tag_t"].translated_type.sdn_bitwidth = width
    assert f"{width} bits" in refused(embedded_artifacts, info)


def test_names_for_a_value_of_no_bits() -> None:
    codec = StringCodec(0)
    assert codec.decode(b"a") == 0
    with pytest.raises(DataPlaneError, match="no number left"):
        codec.decode(b"b")


def test_a_log_has_little_of_annotations_that_are_not_understood(
    embedded_artifacts: Artifacts, info: p4info_pb2.P4Info, caplog: pytest.LogCaptureFixture
) -> None:
    """A P4Info of 1 MB made 7 MB of log and another took 20 s."""
    for number in range(1_000):
        info.tables[0].match_fields[0].annotations.append(f"@refers_to({'x' * 300}, {number})")
        info.tables[0].preamble.annotations.append(f'@entry_restriction("{number} is wrong")')
    info.tables[1].preamble.annotations.append(f'@entry_restriction("{"1 == 1;" * 20_000}")')
    data_plane = EmbeddedEngine({}, CPU_PORT).load(embedded_artifacts.device_config)
    Pipeline(p4runtime_pb2.ForwardingPipelineConfig(p4info=info), data_plane)
    data_plane.close()
    assert "at most 65536 are possible" in caplog.text
    assert len(caplog.records) == MAX_TOLD + 2
    assert max(len(record.getMessage()) for record in caplog.records) < 600
