// error 5:9: an action can be called only in a control or an action
action a() { }
parser P() {
    state start {
        a();
    }
}
