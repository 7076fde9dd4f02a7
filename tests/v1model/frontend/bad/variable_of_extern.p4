// error 4:5: variable 'e' cannot have type E
extern E { E(); }
void f() {
    E e;
}
