"""p4runtime-shell, unchanged, as a user types it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import p4runtime_sh.shell as sh
import pytest
from google.protobuf import text_format
from p4runtime_sh.p4runtime import P4RuntimeWriteException

from tests.v1model.p4runtime.conftest import BOTH
from tests.v1model.p4runtime.engines import CPU_PORT, RunningSwitch
from tests.v1model.p4runtime.test_stream import LEARN, TO_CPU, flow


@pytest.fixture
def shell(switch: RunningSwitch, tmp_path: Path) -> Iterator[None]:
    p4info, config = tmp_path / "p4info.txtpb", tmp_path / "config"
    p4info.write_text(text_format.MessageToString(switch.artifacts.p4info))
    config.write_bytes(switch.artifacts.device_config)
    sh.setup(
        device_id=0,
        grpc_addr=switch.address,
        election_id=(0, 1),
        config=sh.FwdPipeConfig(str(p4info), str(config)),
        verbose=False,
    )
    yield
    sh.teardown()


def index_entry(key: str) -> sh.TableEntry:
    entry = sh.TableEntry("FlowIngress.index")(action="FlowIngress.set_slot")
    entry.match["headers.flow.key"] = key
    entry.action["base"], entry.action["generation"] = "7", "1"
    return entry


@BOTH
@pytest.mark.usefixtures("shell")
def test_table_entries() -> None:
    entry = index_entry("0xabc")
    entry.insert()
    with pytest.raises(P4RuntimeWriteException, match="ALREADY_EXISTS"):
        entry.insert()
    (read,) = sh.TableEntry("FlowIngress.index").read()
    assert read.action["base"].value == b"\7"
    entry.action["base"] = "8"
    entry.modify()
    default = sh.TableEntry("FlowIngress.routes")(action="FlowIngress.forward", is_default=True)
    default.action["port"] = "3"
    default.modify()
    entry.delete()
    assert list(sh.TableEntry("FlowIngress.index").read()) == []


@BOTH
@pytest.mark.usefixtures("shell")
def test_ternary_range_and_optional_matches() -> None:
    entry = sh.TableEntry("FlowIngress.acl")(action="FlowIngress.drop", priority=5)
    entry.match["kind"] = "0x1200&&&0xff00"
    entry.match["address"] = "10..20"
    entry.match["operation"] = "3"
    entry.insert()
    (read,) = sh.TableEntry("FlowIngress.acl").read()
    assert (read.match["kind"].ternary.value, read.match["kind"].ternary.mask) == (b"\x12\0", b"\xff\0")
    assert (read.match["address"].range.low, read.match["address"].range.high) == (b"\x0a", b"\x14")
    assert read.match["operation"].optional.value == b"\3"


@BOTH
@pytest.mark.usefixtures("shell")
def test_counters_meters_and_groups() -> None:
    counter = sh.CounterEntry("FlowIngress.kinds")
    counter.index, counter.packet_count = 3, 5
    counter.modify()
    assert [entry.packet_count for entry in sh.CounterEntry("FlowIngress.kinds").read()][3] == 5
    meter = sh.MeterEntry("FlowIngress.limits")
    meter.index, meter.cir, meter.cburst, meter.pir, meter.pburst = 1, 10, 5, 20, 10
    meter.modify()
    group = sh.MulticastGroupEntry(7).add(1, 0).add(2, 0)
    group.insert()
    assert [entry.group_id for entry in sh.MulticastGroupEntry().read()] == [7]
    session = sh.CloneSessionEntry(5).add(1, 1)
    session.insert()
    session.delete()


@BOTH
@pytest.mark.usefixtures("shell")
def test_packets_and_digests() -> None:
    digest = sh.DigestEntry("learned_t")
    digest.max_timeout_ns, digest.max_list_size, digest.ack_timeout_ns = 0, 1, 0
    digest.insert()
    packets, digests = sh.PacketIn(), sh.DigestList()
    packet = sh.PacketOut(payload=flow(TO_CPU, address=9), padding="0", egress_port="0")
    packet.send()
    packet.payload = flow(LEARN, address=9)
    packet.send()
    incoming = packets.packet_in_queue.get(timeout=60)  # sniff() would wait for the whole time
    assert incoming.packet.payload == flow(TO_CPU, address=9)
    assert incoming.packet.metadata[0].value == CPU_PORT.to_bytes(2, "big")
    learned = digests.digest_list_queue.get(timeout=60)
    assert learned.digest.data[0].struct.members[0].bitstring == b"\x09"
