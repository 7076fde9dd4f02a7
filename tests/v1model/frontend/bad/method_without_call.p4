// error 4:12: 'isValid' is a method: call it as isValid()
header H { bit<8> a; }
bool f(in H h) {
    return h.isValid;
}
