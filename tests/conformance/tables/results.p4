// What apply() tells: hit, miss, action_run; tables applied in conditions; a table without keys.
#include "../harness/shape.p4"

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action add(bit<64> value) {
        hdr.h.r = hdr.h.r + value;
    }
    action other() { }
    table t {
        key = { hdr.h.a: exact; }
        actions = { add; other; NoAction; }
        default_action = other();
    }
    table u {
        key = { hdr.h.b: exact; }
        actions = { add; NoAction; }
        default_action = add(5);
    }
    table keyless {
        actions = { add; NoAction; }
        default_action = NoAction();
    }
    apply {
        if (t.apply().hit) {
            hdr.h.r = hdr.h.r + 0x100;
        } else if (u.apply().miss) {
            hdr.h.r = hdr.h.r + 0x200;
        }
        if (!keyless.apply().hit) {
            hdr.h.r = hdr.h.r + 0x1000;
        }
    }
}

#include "../harness/main.p4"
