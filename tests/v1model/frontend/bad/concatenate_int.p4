// error 3:17: '++' needs operands with a width
bit<16> f(in bit<8> a) {
    return a ++ 1;
}
