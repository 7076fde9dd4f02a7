// exact, lpm and ternary keys; longest prefix and highest priority win; misses run the default action.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action found(bit<64> value) {
        hdr.h.r = value;
    }
    action missed() {
        hdr.h.r = 0xFFFFFFFFFFFFFFFF;
    }
    table by_exact {
        key = {
            hdr.h.a: exact;
            hdr.h.b: exact;
        }
        actions = { found; missed; }
        default_action = missed();
    }
    table by_prefix {
        key = {
            hdr.h.a: lpm;
        }
        actions = { found; missed; }
        default_action = missed();
    }
    table by_prefix_and_exact {
        key = {
            hdr.h.b: exact;
            hdr.h.a: lpm;
        }
        actions = { found; missed; }
        default_action = missed();
    }
    table by_mask {
        key = {
            hdr.h.a: ternary;
            hdr.h.b: ternary;
        }
        actions = { found; missed; }
        default_action = missed();
    }
    apply {
        if (hdr.h.op == 0) {
            by_exact.apply();
        } else if (hdr.h.op == 1) {
            by_prefix.apply();
        } else if (hdr.h.op == 2) {
            by_prefix_and_exact.apply();
        } else {
            by_mask.apply();
        }
    }
}

#include "../harness/main.p4"
