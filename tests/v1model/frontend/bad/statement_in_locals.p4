// error 3:5: expected a declaration, found 'x'
control C(inout bit<8> x) {
    x = 1;
    apply { }
}
