// Standard metadata: ports, length, and that ingress' egress_port is not there yet.
#define HAS_EGRESS
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.h.a = (bit<32>) sm.ingress_port;
        hdr.h.b = sm.packet_length;
        hdr.h.r[63:55] = sm.egress_port;
        sm.egress_spec = 2;
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.h.r[8:0] = sm.egress_port;
        hdr.h.r[47:32] = (bit<16>) sm.packet_length;
    }
}

#include "../harness/main.p4"
