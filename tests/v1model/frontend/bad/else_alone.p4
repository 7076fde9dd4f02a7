// error 3:5: 'else' without an 'if' before it
void f() {
    else { }
}
