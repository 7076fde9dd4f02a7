// error 4:5: 'g' takes 1 type arguments, not 2
extern void g<T>(in T a);
void f() {
    g<bit<8>, bit<8>>(1);
}
