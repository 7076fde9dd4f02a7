// The rest of a conformance case: parser, empty controls, deparser, the package. Packets go out of port 1
// unless the case says otherwise. A case with `#define HAS_EGRESS` defines `control TestEgress` too.
parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control TestVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    Test() test;
    apply {
        sm.egress_spec = 1;
        test.apply(hdr, meta, sm);
    }
}

#ifndef HAS_EGRESS
control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { }
}
#endif

control TestCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TestDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
    }
}

V1Switch(TestParser(), TestVerify(), TestIngress(), TestEgress(), TestCompute(), TestDeparser()) main;
