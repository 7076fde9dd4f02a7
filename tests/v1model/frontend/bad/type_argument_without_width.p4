// error 4:5: cannot infer a width for type argument 'T' of 'g'
extern void g<T>(in T a);
void f() {
    g(1);
}
