// error 4:5: cannot infer type argument 'T' of 'g'
extern T g<T>();
void f() {
    g();
}
