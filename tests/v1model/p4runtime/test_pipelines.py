"""Setting, verifying, saving, committing and replacing pipelines."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from tests.v1model.p4runtime import engines
from tests.v1model.p4runtime.conftest import BOTH
from tests.v1model.p4runtime.controller import INSERT, MODIFY, Controller
from tests.v1model.p4runtime.engines import Artifacts, RunningSwitch
from tests.v1model.p4runtime.test_entities import counter, digest, group, member
from tests.v1model.p4runtime.test_tables import index_entry
from v1model.protos.p4.v1 import p4runtime_pb2


def get_config(
    c: Controller, response_type: str = "ALL"
) -> p4runtime_pb2.GetForwardingPipelineConfigResponse:
    request = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=0, response_type=response_type)
    response: p4runtime_pb2.GetForwardingPipelineConfigResponse
    response = c.client.stub.GetForwardingPipelineConfig(request)
    return response


def test_before_a_pipeline_is_set(bare_controller: Controller) -> None:
    c = bare_controller
    assert not get_config(c).HasField("config")
    assert c.write(INSERT, index_entry(c, 1)) == ["FAILED_PRECONDITION"]
    assert c.read_code(index_entry(c, 1)) == "FAILED_PRECONDITION"


@BOTH
def test_a_config_is_read_as_set(bare_controller: Controller, switch: RunningSwitch) -> None:
    c = bare_controller
    assert c.set_pipeline(switch.artifacts, cookie=77) == "OK"
    config = get_config(c, "P4INFO_AND_COOKIE").config
    assert (config.p4info, config.cookie.cookie) == (switch.artifacts.p4info, 77)
    cookie = get_config(c, "COOKIE_ONLY").config
    assert cookie.cookie.cookie == 77
    assert not cookie.HasField("p4info")


def test_the_device_config_is_read_as_set(bare_controller: Controller, switch: RunningSwitch) -> None:
    c = bare_controller
    c.set_pipeline(switch.artifacts)
    assert get_config(c).config.p4_device_config == switch.artifacts.device_config
    config = get_config(c, "DEVICE_CONFIG_AND_COOKIE").config
    assert (config.p4_device_config, config.HasField("p4info")) == (switch.artifacts.device_config, False)


def test_verify_changes_nothing(controller: Controller, switch: RunningSwitch) -> None:
    c = controller
    c.insert(index_entry(c, 1))
    assert c.set_pipeline(switch.artifacts, "VERIFY") == "OK"
    assert len(c.read_table("index")) == 1


def test_commit_clears_the_state(controller: Controller, switch: RunningSwitch) -> None:
    c = controller
    c.insert(index_entry(c, 1))
    assert c.set_pipeline(switch.artifacts) == "OK"
    assert c.read_table("index") == []


def test_writes_after_save_take_effect_with_the_commit(controller: Controller, switch: RunningSwitch) -> None:
    c = controller
    assert c.set_pipeline(switch.artifacts, "COMMIT") == "NOT_FOUND"
    to_cpu = c.entry("keyless", action=c.action("forward", port=engines.CPU_PORT), is_default_action=True)
    dropped, packet = bytes(23), bytes(22) + b"\1"
    c.insert(index_entry(c, 1))
    assert c.set_pipeline(switch.artifacts, "VERIFY_AND_SAVE") == "OK"
    assert c.read_table("index") == []
    assert c.write(MODIFY, to_cpu) == ["OK"]
    c.send_packet(dropped)  # the old pipeline still forwards
    c.send_packet(packet, egress_port=engines.CPU_PORT)
    assert c.receive("packet").payload == packet
    assert c.set_pipeline(switch.artifacts, "COMMIT") == "OK"
    c.send_packet(packet)
    assert c.receive("packet").payload == packet
    assert c.set_pipeline(switch.artifacts, "COMMIT") == "NOT_FOUND"


def test_reconcile_keeps_the_state(controller: Controller, switch: RunningSwitch) -> None:
    c = controller
    c.insert(
        index_entry(c, 1, metadata=b"note"), group(c, 7, (1, 0)), digest(c, 1, 2, 3), member(c, 1, 1, "hops")
    )
    default = c.entry("routes", action=c.action("forward", port=3), is_default_action=True)
    assert c.write(MODIFY, default, counter(c, 3, packets=5)) == ["OK", "OK"]
    kinds = ("table_entry", "action_profile_member", "counter_entry", "digest_entry")
    before = [c.everything(kind) for kind in (*kinds, "packet_replication_engine_entry")]
    assert c.set_pipeline(switch.artifacts, "RECONCILE_AND_COMMIT", cookie=5) == "OK"
    assert [c.everything(kind) for kind in (*kinds, "packet_replication_engine_entry")] == before
    assert c.read(c.entry("routes", is_default_action=True)) == [default]
    assert get_config(c, "COOKIE_ONLY").config.cookie.cookie == 5


def test_state_that_a_new_program_has_no_place_for(
    controller: Controller, switch: RunningSwitch, tmp_path: Path
) -> None:
    c = controller
    c.insert(*(index_entry(c, key) for key in range(5)))
    smaller = tmp_path / "smaller.p4"
    smaller.write_text(engines.PROGRAM.read_text().replace("size = 8192;", "size = 4;"))
    assert c.set_pipeline(engines.compile_embedded(smaller), "RECONCILE_AND_COMMIT") == "INVALID_ARGUMENT"
    assert len(c.read_table("index")) == 5
    assert c.set_pipeline(engines.compile_embedded(smaller)) == "OK"


@pytest.mark.parametrize(
    ("device_config", "reason"),
    [
        (b"", "is empty"),
        (b"\x7fELF", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b"{}", "is not of the format weir-v1model/1"),
        (b'{"__meta__": {}, "pipelines": []}', "is p4c's JSON for BMv2"),
        (b'{"format": "weir-v1model/1", "name": "bad.p4", "source": "\\ud800"}', "not Unicode's"),
        (b'{"format": "weir-v1model/1", "name": "bad.p4", "source": "header {"}', r"bad\.p4:1:8: error: "),
    ],
)
def test_device_configs_that_are_none(
    bare_controller: Controller, switch: RunningSwitch, device_config: bytes, reason: str
) -> None:
    artifacts = Artifacts(switch.artifacts.p4info, device_config)
    c = bare_controller
    with pytest.raises(grpc.RpcError, match=reason) as caught:
        c.client.stub.SetForwardingPipelineConfig(c.pipeline_request(artifacts, "VERIFY_AND_COMMIT"))
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_p4info_that_is_not_the_programs(bare_controller: Controller, switch: RunningSwitch) -> None:
    artifacts = Artifacts(type(switch.artifacts.p4info)(), switch.artifacts.device_config)
    artifacts.p4info.CopyFrom(switch.artifacts.p4info)
    artifacts.p4info.tables[0].preamble.name = "FlowIngress.nonsense"
    assert bare_controller.set_pipeline(artifacts) == "INVALID_ARGUMENT"


def test_capabilities(controller: Controller) -> None:
    assert controller.client.api_version() == "1.4.0"
