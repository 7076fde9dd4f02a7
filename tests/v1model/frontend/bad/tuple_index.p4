// error 3:14: a tuple of 1 has no element 1
bit<8> f(in tuple<bit<8>> t) {
    return t[1];
}
