// error 3:17: shift by a negative amount
bit<8> f(in bit<8> a) {
    return a << -1;
}
