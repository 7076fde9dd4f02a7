// error 3:14: [0:3] is no slice: it must be [high:low]
bit<4> f(in bit<8> a) {
    return a[0:3];
}
