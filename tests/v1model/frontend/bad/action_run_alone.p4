// error 8:13: 'action_run' can only be the subject of a switch statement
control C() {
    action a() { }
    table t {
        actions = { a; }
    }
    apply {
        if (t.apply().action_run == t.apply().action_run) { }
    }
}
