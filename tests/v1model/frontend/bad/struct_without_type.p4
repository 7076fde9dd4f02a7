// error 4:5: the struct for 'T' of 'g' has no type
extern void g<T>(in T a);
void f() {
    g({x = 8w1});
}
