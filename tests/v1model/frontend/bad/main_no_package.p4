// error 3:5: 'main' must be a package, not E
extern E { E(); }
E() main;
