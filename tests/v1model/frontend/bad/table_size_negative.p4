// error 6:16: the size of a table must not be negative
control C() {
    action a() { }
    table t {
        actions = { a; }
        size = -1;
    }
    apply { }
}
