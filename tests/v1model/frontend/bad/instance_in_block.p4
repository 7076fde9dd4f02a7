// error 5:13: an instance cannot be declared among statements
extern E { E(); }
control C() {
    apply {
        E() e;
    }
}
