// error 4:5: the left side must be something that can be assigned: 'a' is a constant
const bit<8> a = 1;
void f() {
    a = 2;
}
