// Priorities of entries in the program: the larger wins, or the smaller if the table says so.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action set(bit<64> value) {
        hdr.h.r = value;
    }
    table larger {
        key = { hdr.h.a: ternary; }
        actions = { set; NoAction; }
        default_action = NoAction();
        largest_priority_wins = true;
        entries = {
            const priority = 10: 0x10 &&& 0xF0: set(1);
            priority = 20: 0x10 &&& 0xFF: set(2);
            priority = 5: _: set(3);
        }
    }
    table smaller {
        key = { hdr.h.a: ternary; }
        actions = { set; NoAction; }
        default_action = NoAction();
        largest_priority_wins = false;
        priority_delta = 10;
        entries = {
            priority = 100: 0x10 &&& 0xF0: set(1);
            0x11 &&& 0xFF: set(2);
            priority = 50: 0x12 &&& 0xFF: set(3);
        }
    }
    apply {
        if (hdr.h.op == 0) {
            larger.apply();
        } else {
            smaller.apply();
        }
    }
}

#include "../harness/main.p4"
