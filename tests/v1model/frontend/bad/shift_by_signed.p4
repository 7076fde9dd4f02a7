// error 3:17: the amount of a shift must be unsigned
bit<8> f(in bit<8> a, in int<8> n) {
    return a << n;
}
