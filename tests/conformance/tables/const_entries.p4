// Entries in the program: order is priority unless priorities are given; masks, ranges, prefixes, don't-care.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action set(bit<64> value) {
        hdr.h.r = value;
    }
    table ordered {
        key = {
            hdr.h.a: ternary;
            hdr.h.b[7:0]: range;
        }
        actions = { set; }
        const default_action = set(0xDD);
        const entries = {
            (0x10, 5 .. 9): set(1);
            (0x10 &&& 0xF0, 1 .. 200): set(2);
            (_, 0 .. 9): set(3);
            (0x20, _): set(4);
        }
    }
    table prefixes {
        key = { hdr.h.a: lpm; }
        actions = { set; NoAction; }
        default_action = NoAction();
        const entries = {
            0x0A000000 &&& 0xFF000000: set(8);
            0x0A0B0000 &&& 0xFFFF0000: set(16);
            _: set(0);
        }
    }
    table optionals {
        key = {
            hdr.h.a: optional;
            hdr.h.b: optional;
        }
        actions = { set; NoAction; }
        default_action = NoAction();
        const entries = {
            (1, 2): set(12);
            (1, _): set(10);
            (_, 2): set(2);
        }
    }
    apply {
        if (hdr.h.op == 0) {
            ordered.apply();
        } else if (hdr.h.op == 1) {
            prefixes.apply();
        } else {
            optionals.apply();
        }
    }
}

#include "../harness/main.p4"
