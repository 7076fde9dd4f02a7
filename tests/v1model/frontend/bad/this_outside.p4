// error 3:5: 'this' is only known where an abstract method is implemented
void f() {
    this.run();
}
