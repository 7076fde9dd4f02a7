// error 4:7: the arguments of a constructor must be known at compile time
extern E { E(bit<8> n); }
control C(in bit<8> x) {
    E(x) e;
    apply { }
}
