// error 2:13: member 'b' of enum 'E' needs a value
enum bit<8> E {
    a = 1,
    b
}
