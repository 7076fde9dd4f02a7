// error 5:9: 'next' of a header stack exists only in a parser
header H { bit<8> a; }
control C(inout H[2] s) {
    apply {
        s.next.a = 1;
    }
}
