// unsupported 2:8: parser 'P' has a body and so cannot be generic
parser P<T>(in T x) {
    state start { }
}
