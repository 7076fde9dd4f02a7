// error 3:13: 'switch' cannot be used with bool
void f(in bool b) {
    switch (b) {
        default: { }
    }
}
