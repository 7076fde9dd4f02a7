// error 3:12: 'return' has a value where none is expected
void f() {
    return 1;
}
