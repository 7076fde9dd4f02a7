// error 3:5: 'break' is only possible in a loop
void f() {
    break;
}
