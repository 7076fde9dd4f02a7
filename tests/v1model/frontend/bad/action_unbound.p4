// error 5:21: 'a' needs an argument for 'y'
control C(in bit<8> x) {
    action a(in bit<8> y) { }
    table t {
        actions = { a; }
    }
    apply { }
}
