// unsupported 4:16: header 'H' has more than one varbit field
header H {
    varbit<8> a;
    varbit<16> b;
}
