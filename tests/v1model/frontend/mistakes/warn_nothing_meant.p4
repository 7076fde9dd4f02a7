#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ip_t { bit<8> ttl; bit<8> protocol; bit<32> dst; }
struct headers_t { ethernet_t ethernet; ip_t ip; }
struct meta_t { @field_list(1) bit<9> port; bit<16> hash; }

parser MyParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0900 .. 0x08ff: accept;
            0x0800: ip;
            default: accept;
        }
    }
    state ip {
        packet.extract(hdr.ip);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout meta_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    counter(8, CounterType.packets) seen;
    action drop() { mark_to_drop(standard); }
    action forward(bit<9> port) {
        standard.egress_spec = port;
        hdr.ip.ttl = hdr.ip.ttl - 1;
    }
    table route {
        key = { hdr.ip.dst: lpm; }
        actions = { forward; drop; }
        default_action = drop();
        size = 1024;
    }
    apply {
        if (hdr.ip.isValid()) {
            clone_preserving_field_list(CloneType.I2E, 5, 2);
            resubmit_preserving_field_list(1);
            route.apply();
            seen.count(0);
        }
    }
}

control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }
control MyCompute(inout headers_t hdr, inout meta_t meta) { apply { } }
control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ip);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
