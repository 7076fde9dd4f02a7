"""What a user types into p4runtime-shell. Runs in the shell's own environment, which knows nothing of this
project: `python shell_commands.py ADDRESS P4INFO CONFIG NAME [ARGUMENT...]` calls the function NAME."""

import sys

import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeWriteException


def table_entries() -> None:
    entry = sh.TableEntry("FlowIngress.index")(action="FlowIngress.set_slot")
    entry.match["headers.flow.key"] = "0xabc"
    entry.action["base"], entry.action["generation"] = "7", "1"
    entry.insert()
    try:
        entry.insert()
    except P4RuntimeWriteException as error:
        assert "ALREADY_EXISTS" in str(error)  # noqa: PT017  # pytest is not in this environment
    else:
        raise AssertionError("inserted twice")
    (read,) = sh.TableEntry("FlowIngress.index").read()
    assert read.action["base"].value == b"\7"
    entry.action["base"] = "8"
    entry.modify()
    default = sh.TableEntry("FlowIngress.routes")(action="FlowIngress.forward", is_default=True)
    default.action["port"] = "3"
    default.modify()
    entry.delete()
    assert list(sh.TableEntry("FlowIngress.index").read()) == []


def ternary_range_and_optional_matches() -> None:
    entry = sh.TableEntry("FlowIngress.acl")(action="FlowIngress.drop", priority=5)
    entry.match["kind"] = "0x1200&&&0xff00"
    entry.match["address"] = "10..20"
    entry.match["operation"] = "3"
    entry.insert()
    (read,) = sh.TableEntry("FlowIngress.acl").read()
    assert (read.match["kind"].ternary.value, read.match["kind"].ternary.mask) == (b"\x12\0", b"\xff\0")
    assert (read.match["address"].range.low, read.match["address"].range.high) == (b"\x0a", b"\x14")
    assert read.match["operation"].optional.value == b"\3"


def counters_meters_and_groups() -> None:
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


def packets_and_digests(for_cpu: str, learned: str, cpu_port: str) -> None:
    """Packets in hex: one that comes back as PacketIn, one whose address 9 comes as a digest."""
    digest = sh.DigestEntry("learned_t")
    digest.max_timeout_ns, digest.max_list_size, digest.ack_timeout_ns = 0, 1, 0
    digest.insert()
    packets, digests = sh.PacketIn(), sh.DigestList()
    packet = sh.PacketOut(payload=bytes.fromhex(for_cpu), padding="0", egress_port="0")
    packet.send()
    packet.payload = bytes.fromhex(learned)
    packet.send()
    incoming = packets.packet_in_queue.get(timeout=60)  # sniff() would wait for the whole time
    assert incoming.packet.payload == bytes.fromhex(for_cpu)
    assert incoming.packet.metadata[0].value == int(cpu_port).to_bytes(2, "big")
    list_ = digests.digest_list_queue.get(timeout=60)
    assert list_.digest.data[0].struct.members[0].bitstring == b"\x09"


def main(address: str, p4info: str, config: str, name: str, *arguments: str) -> None:
    sh.setup(0, address, (0, 1), config=sh.FwdPipeConfig(p4info, config), verbose=False)
    try:
        globals()[name](*arguments)
    finally:
        sh.teardown()


if __name__ == "__main__":
    main(*sys.argv[1:])
