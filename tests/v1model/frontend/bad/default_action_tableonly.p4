// error 6:26: an action that is @tableonly cannot be that of the default action
control C() {
    action a() { }
    table t {
        actions = { @tableonly a; }
        default_action = a();
    }
    apply { }
}
