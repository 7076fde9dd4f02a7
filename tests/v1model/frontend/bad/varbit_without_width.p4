// error 3:12: expected '<' and the largest width of the varbit, found 'v'
header H {
    varbit v;
}
