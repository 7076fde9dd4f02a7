// error 3:14: bit<8> has no bit 8
bit<4> f(in bit<8> a) {
    return a[8:5];
}
