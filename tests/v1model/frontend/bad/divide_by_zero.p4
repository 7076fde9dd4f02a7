// error 3:16: division by zero
bit<8> f(in bit<8> a) {
    return a / 0;
}
