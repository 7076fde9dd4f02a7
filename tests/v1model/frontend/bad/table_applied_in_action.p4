// error 8:9: a table can be applied only in the apply block of a control
control C() {
    action a() { }
    table t {
        actions = { a; }
    }
    action b() {
        t.apply();
    }
    apply { }
}
