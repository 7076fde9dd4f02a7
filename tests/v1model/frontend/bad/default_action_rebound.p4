// error 6:28: this differs from what the table's actions list binds
control C(in bit<8> p, in bit<8> q) {
    action a(in bit<8> x, bit<8> y) { }
    table t {
        actions = { a(p); }
        default_action = a(q, 1);
    }
    apply { }
}
