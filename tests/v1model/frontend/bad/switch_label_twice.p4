// error 5:9: this case is already there
void f(in bit<8> a) {
    switch (a) {
        1: { }
        1: { }
    }
}
