// error 3:12: the operands differ in type: bit<8> and int<8>
bool f(in bit<8> a, in int<8> b) {
    return a < b;
}
