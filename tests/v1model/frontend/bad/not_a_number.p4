// error 3:13: expected bool, found bit<8>
bool f(in bit<8> a) {
    return !a;
}
