// error 3:12: the operands differ in type: bit<8> and bool
bit<8> f(in bool b, in bit<8> x, in bool y) {
    return b ? x : y;
}
