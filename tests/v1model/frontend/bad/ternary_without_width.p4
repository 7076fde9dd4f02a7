// error 3:12: one of the two values needs a width
bit<8> f(in bool b) {
    return b ? 1 : 2;
}
