// error 3:22: cannot loop over bit<8> with bit<8>
void f(in bit<8> a) {
    for (bit<8> i in a) { }
}
