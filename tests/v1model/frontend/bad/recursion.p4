// error 3:12: 'f' calls itself
bit<8> f(in bit<8> x) {
    return f(x);
}
