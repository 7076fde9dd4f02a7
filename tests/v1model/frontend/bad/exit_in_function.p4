// error 3:5: 'exit' cannot be used in a function
void f() {
    exit;
}
