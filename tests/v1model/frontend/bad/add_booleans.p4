// error 3:12: '+' cannot be used with bool
bool f(in bool a) {
    return a + a;
}
