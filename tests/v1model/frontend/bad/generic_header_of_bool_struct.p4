// error 5:5: field 'x' of header H<E> cannot be E
enum E { a }
header H<T> { T x; }
struct S {
    H<E> h;
}
