// error 3:5: variable 'x' cannot have type int
void f() {
    int x = 1;
}
