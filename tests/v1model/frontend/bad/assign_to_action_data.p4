// error 4:9: the left side must be something that can be assigned: parameter 'x' is without direction
control C() {
    action a(bit<8> x) {
        x = 1;
    }
    apply { }
}
