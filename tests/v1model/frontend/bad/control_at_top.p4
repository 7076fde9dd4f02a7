// error 5:5: control C cannot be instantiated here
control C() {
    apply { }
}
C() c;
