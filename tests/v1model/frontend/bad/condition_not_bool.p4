// error 3:9: expected bool, found bit<1>
void f(in bit<1> a) {
    if (a) { }
}
