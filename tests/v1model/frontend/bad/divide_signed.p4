// error 3:12: '/' is not defined for int<8>
int<8> f(in int<8> a) {
    return a / 2;
}
