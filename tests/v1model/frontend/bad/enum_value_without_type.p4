// error 3:9: 'a' has a value but the enum no underlying type
enum E {
    a = 1
}
