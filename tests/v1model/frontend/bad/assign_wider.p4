// error 3:9: expected bit<8>, found bit<16>
void f(out bit<8> a, in bit<16> b) {
    a = b;
}
