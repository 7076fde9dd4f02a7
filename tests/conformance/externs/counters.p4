// Indexed counters of packets and bytes; an index out of range is ignored.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    counter(4, CounterType.packets) packets;
    counter(4, CounterType.packets_and_bytes) both;
    apply {
        packets.count(hdr.h.a);
        both.count((bit<32>) hdr.h.op);
    }
}

#include "../harness/main.p4"
