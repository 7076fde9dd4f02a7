// error 6:16: size must be at least 0
control C() {
    action a() { }
    table t {
        actions = { a; }
        size = -1;
    }
    apply { }
}
