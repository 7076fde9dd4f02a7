// error 4:9: the label of a case must be known at compile time
void f(in bit<8> a, in bit<8> b) {
    switch (a) {
        b: { }
    }
}
