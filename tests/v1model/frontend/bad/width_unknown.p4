// error 3:9: the width of bit<> must be a compile-time-known integer
control C(in bit<8> n) {
    bit<n> x;
    apply { }
}
