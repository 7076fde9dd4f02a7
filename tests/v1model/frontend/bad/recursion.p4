// error 3:12: 'f' is not declared
bit<8> f(in bit<8> x) {
    return f(x);
}
