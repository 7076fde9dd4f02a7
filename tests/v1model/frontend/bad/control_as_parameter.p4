// error 3:11: parameter 't' cannot be control T
control T();
control C(T t) {
    apply { }
}
