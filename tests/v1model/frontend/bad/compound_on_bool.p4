// error 3:5: '+' cannot be used with bool
void f(inout bool a) {
    a += true;
}
