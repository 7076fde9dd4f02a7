// unsupported 4:14: parameter 'h' of an action in a table cannot be header H
header H { bit<8> a; }
control C() {
    action a(H h) { }
    table t {
        actions = { a; }
    }
    apply { }
}
