#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ip_t { bit<8> ttl; bit<8> protocol; bit<32> dst; }
struct headers_t { ethernet_t ethernet; ip_t ip; }
struct meta_t { bit<9> port; bit<16> hash; }

parser MyParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
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
    action drop() { mark_to_drop(standard); }
    table route {
        key = { hdr.ip.dst: lpm; }
        actions = { drop; }
        default_action = drop();
    }
    apply {
        if (hdr.ip.isValid()) {
            switch (route.apply().action_run) {
                forward: { hdr.ip.ttl = true; }
                drop: { hdr.ip.tll = 1; }
            }
            for (bit<8> i = 0; i < last; i = i + one) { hdr.ip.ttl = i + true; }
            for (bit<8> i in hdr.ip) { hdr.ip.protocl = i; }
            switch (hdr.ip.ttl) {
                300: { hdr.ip.ttl = 1; }
                1: { hdr.ip.dst = nothing; }
            }
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
