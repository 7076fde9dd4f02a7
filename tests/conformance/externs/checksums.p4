// Checksums: verified into checksum_error under a condition, updated in the deparsed packet, with payload.
#include <core.p4>
#include <v1model.p4>

header sums_t {
    bit<8>  command;
    bit<8>  seen;
    bit<16> a;
    bit<16> b;
    bit<16> sum;
    bit<16> whole;
}

struct headers_t {
    sums_t sums;
}

struct metadata_t { }

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.sums);
        transition accept;
    }
}

control TestVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.sums.command[0:0] == 1, { hdr.sums.a, hdr.sums.b }, hdr.sums.sum, HashAlgorithm.csum16);
        verify_checksum_with_payload(hdr.sums.command[1:1] == 1, { hdr.sums.a, hdr.sums.b }, hdr.sums.whole,
                                     HashAlgorithm.csum16);
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.sums.seen = (bit<8>) sm.checksum_error;
        hdr.sums.a = hdr.sums.a + 1;
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { }
}

control TestCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.sums.command[2:2] == 1, { hdr.sums.a, hdr.sums.b }, hdr.sums.sum, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.sums.command[3:3] == 1, { hdr.sums.a, hdr.sums.b }, hdr.sums.whole,
                                     HashAlgorithm.csum16);
    }
}

control TestDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.sums);
    }
}

V1Switch(TestParser(), TestVerify(), TestIngress(), TestEgress(), TestCompute(), TestDeparser()) main;
