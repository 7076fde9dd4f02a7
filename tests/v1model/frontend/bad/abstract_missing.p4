// error 6:5: 'e' does not implement abstract method 'run'
extern E {
    E();
    abstract bit<8> run(in bit<8> x);
}
E() e;
