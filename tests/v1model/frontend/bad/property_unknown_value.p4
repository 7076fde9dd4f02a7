// error 6:26: table property 'implementation' must be known at compile time
control C(in bit<8> x) {
    action a() { }
    table t {
        actions = { a; }
        implementation = x;
    }
    apply { }
}
