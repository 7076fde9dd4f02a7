// Enums with and without an underlying type, in fields, comparisons and selections.
#include "../harness/shape.p4"

enum bit<8> Operation {
    add = 1,
    subtract = 2,
    other = 0xF0
}

enum Color { red, green, blue }

control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        Operation operation = (Operation) hdr.h.op;
        Color color = Color.red;
        if (operation == Operation.add) {
            color = Color.green;
        } else if (operation == Operation.subtract) {
            color = Color.blue;
        }
        if (color == Color.green) {
            hdr.h.r = (bit<64>) (hdr.h.a + hdr.h.b);
        } else if (color == Color.blue) {
            hdr.h.r = (bit<64>) (hdr.h.a - hdr.h.b);
        } else {
            hdr.h.op = Operation.other;
            hdr.h.r = (bit<64>) (bit<8>) operation;
        }
    }
}

#include "../harness/main.p4"
