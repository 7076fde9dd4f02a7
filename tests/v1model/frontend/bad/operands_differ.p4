// error 3:12: the operands differ in type: bit<8> and bit<16>
bit<8> f(in bit<8> a, in bit<16> b) {
    return a + b;
}
