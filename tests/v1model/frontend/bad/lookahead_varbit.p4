// error 6:13: 'lookahead' needs a type of one size, not header H
#include <core.p4>
header H { varbit<32> v; }
parser P(packet_in b, out H h) {
    state start {
        h = b.lookahead<H>();
    }
}
