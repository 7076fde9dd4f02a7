// error 4:14: a stack of 4 has no element 4
header H { bit<8> a; }
bit<8> f(in H[4] s) {
    return s[4].a;
}
