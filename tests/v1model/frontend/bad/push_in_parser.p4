// error 5:9: 'push_front' cannot be used in a parser
header H { bit<8> a; }
parser P(inout H[2] s) {
    state start {
        s.push_front(1);
    }
}
