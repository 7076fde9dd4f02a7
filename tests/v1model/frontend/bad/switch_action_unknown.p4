// error 10:13: 'b' is no action of the table
control C() {
    action a() { }
    action b() { }
    table t {
        actions = { a; }
    }
    apply {
        switch (t.apply().action_run) {
            b: { }
        }
    }
}
