// A register read out of range leaves its destination alone, a write is ignored. (BMv2 in release builds
// does not check.)
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<64>>(8) cells;
    counter(4, CounterType.packets) packets;
    apply {
        if (hdr.h.op == 0) {
            cells.write(hdr.h.a, hdr.h.r);
        } else {
            cells.read(hdr.h.r, hdr.h.a);
        }
        packets.count(hdr.h.a);
    }
}

#include "../harness/main.p4"
