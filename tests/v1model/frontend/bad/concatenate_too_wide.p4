// error 3:20: the result has 4096 bits, at most 2048 are possible
void f(in bit<2048> a) {
    bit<2048> b = (a ++ a)[2047:0];
}
