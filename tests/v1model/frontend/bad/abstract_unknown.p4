// error 4:10: 'run' is no abstract method
extern E { E(); }
E() e = {
    void run() { }
};
