// error 4:5: control T is only a type and cannot be instantiated
control T();
control C() {
    T() t;
    apply { }
}
