// error 3:34: parameter 'y' has a direction but stands behind one without
control C() {
    action a(bit<8> x, in bit<8> y) { }
    apply { }
}
