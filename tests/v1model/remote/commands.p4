// All that simple_switch_CLI and BMv2's Thrift services have commands for.
#include <core.p4>
#include <v1model.p4>

header ip_t { bit<32> src; bit<32> dst; bit<16> port; }
struct headers_t { ip_t ip; }
struct metadata_t { bit<2> colour; bit<32> sum; }

parser Pa(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    value_set<bit<16>>(2) known;
    state start {
        packet.extract(hdr.ip);
        transition select(hdr.ip.port) { known: accept; default: accept; }
    }
}

control No(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<32>>(4) cells;
    counter(4, CounterType.packets_and_bytes) seen;
    meter(4, MeterType.packets) rate;
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.packets) pace;
    action to(bit<9> port, bit<48> mac) {
        pace.read(meta.colour);
        sm.egress_spec = port;
    }
    action drop() {
        mark_to_drop(sm);
    }
    table route {
        key = { hdr.ip.dst: lpm; }
        actions = { to; drop; }
        default_action = drop();
        counters = hits;
        meters = pace;
        support_timeout = true;
    }
    table acl {
        key = { hdr.ip.src: ternary; hdr.ip.port: range; }
        actions = { drop; NoAction; }
        default_action = NoAction();
    }
    action_selector(HashAlgorithm.crc16, 32, 16) paths;
    table balance {
        key = { hdr.ip.src: selector; hdr.ip.dst: exact; }
        actions = { to; drop; }
        implementation = paths;
    }
    apply {
        balance.apply();
        cells.write(0, 0);
        seen.count(0);
        rate.execute_meter(0, meta.colour);
        route.apply();
        acl.apply();
        hash(meta.sum, HashAlgorithm.crc32_custom, 32w0, { hdr.ip.src }, 64w0x100000000);
    }
}

control Eg(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { }
}

control De(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(Pa(), No(), In(), Eg(), No(), De()) main;
