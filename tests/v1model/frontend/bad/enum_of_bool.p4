// error 2:6: an enum cannot be based on bool
enum bool E {
    a = true
}
