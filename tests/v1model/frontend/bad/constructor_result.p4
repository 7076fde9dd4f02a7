// error 3:12: constructor 'E' cannot have a return type
extern E {
    bit<8> E();
}
