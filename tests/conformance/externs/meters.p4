// A meter marks what is above its rates: with a rate of zero, the bursts decide.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    meter(4, MeterType.packets) limit;
    apply {
        bit<2> color = 3;
        limit.execute_meter(hdr.h.a, color);
        hdr.h.r = (bit<64>) color;
    }
}

#include "../harness/main.p4"
