// error 7:9: table property 'size' is given twice
control C() {
    action a() { }
    table t {
        actions = { a; }
        size = 1;
        size = 2;
    }
    apply { }
}
