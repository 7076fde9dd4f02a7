// error 3:12: bool cannot be sliced
bit<1> f(in bool a) {
    return a[0:0];
}
