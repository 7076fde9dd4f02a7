// error 3:14: the high bound of a slice must be a compile-time-known integer
bit<4> f(in bit<8> a, in bit<8> n) {
    return a[n:0];
}
