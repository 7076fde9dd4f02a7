// error 4:9: 'default' must be the last case
void f(in bit<8> a) {
    switch (a) {
        default: { }
        1: { }
    }
}
