// error 3:12: bit<8> has no index
bit<1> f(in bit<8> a) {
    return a[1];
}
