// error 2:13: type parameter 'T' is declared twice
extern void f<T, T>(in T x);
