// Tables, counters and registers in egress; copies of a multicast are counted one by one.
#define HAS_EGRESS
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.h.op == 1) {
            sm.mcast_grp = 9;
        }
    }
}

control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    counter(8, CounterType.packets) sent;
    register<bit<32>>(1) total;
    action address(bit<32> a) {
        hdr.h.a = a;
    }
    table ports {
        key = { sm.egress_port: exact; }
        actions = { address; NoAction; }
        default_action = NoAction();
        size = 8;
    }
    apply {
        ports.apply();
        sent.count((bit<32>) sm.egress_port);
        bit<32> value;
        total.read(value, 0);
        value = value + 1;
        total.write(0, value);
    }
}

#include "../harness/main.p4"
