// error 5:24: action 'a' is listed twice
control C() {
    action a() { }
    table t {
        actions = { a; a; }
    }
    apply { }
}
