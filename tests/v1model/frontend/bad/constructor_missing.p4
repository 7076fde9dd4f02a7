// error 5:1: extern 'E' has no constructor
extern E {
    void run();
}
E() e;
