// unsupported 2:9: control 'C' has a body and so cannot be generic
control C<T>(in T x) {
    apply { }
}
