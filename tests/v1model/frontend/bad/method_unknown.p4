// error 9:9: E has no member 'walk'
extern E {
    E();
    void run();
}
control C() {
    E() e;
    apply {
        e.walk();
    }
}
