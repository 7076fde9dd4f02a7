// error 7:12: 'run' differs from the abstract method at line 4
extern E {
    E();
    abstract bit<8> run(in bit<8> x);
}
E() e = {
    bit<8> run(in bit<16> x) {
        return 1;
    }
};
