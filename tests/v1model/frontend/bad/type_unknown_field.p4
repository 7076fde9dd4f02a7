// error 3:5: expected a type, found 'mac_t'
struct S {
    mac_t address;
}
