// error 3:12: cannot cast bit<8> to int<16>
int<16> f(in bit<8> a) {
    return (int<16>)a;
}
