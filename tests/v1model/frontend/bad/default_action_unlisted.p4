// error 7:26: action 'b' is not among the actions of table 't'
control C() {
    action a() { }
    action b() { }
    table t {
        actions = { a; }
        default_action = b();
    }
    apply { }
}
