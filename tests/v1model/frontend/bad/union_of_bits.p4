// error 3:5: a header_union cannot have a field of bit<8>
header_union U {
    bit<8> a;
}
