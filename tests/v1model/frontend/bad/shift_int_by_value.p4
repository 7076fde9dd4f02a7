// error 3:12: the shifted value needs a width
bit<8> f(in bit<8> n) {
    return 1 << n;
}
