// The packet names its multicast group; every copy says which it is.
#define HAS_EGRESS
#include "../conformance/harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.mcast_grp = (bit<16>) hdr.h.a;
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.h.r = (bit<64>) (sm.egress_rid ++ (bit<16>) sm.egress_port);
    }
}

#include "../conformance/harness/main.p4"
