// error 4:5: a header cannot have a field of E
enum E { a, b }
header H {
    E kind;
}
