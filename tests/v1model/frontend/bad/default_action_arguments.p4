// error 6:26: 'a' needs an argument for 'x'
control C() {
    action a(bit<8> x) { }
    table t {
        actions = { a; }
        default_action = a();
    }
    apply { }
}
