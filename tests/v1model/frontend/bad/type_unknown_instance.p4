// error 2:1: expected a declared type, found 'register'
register(5) r;
