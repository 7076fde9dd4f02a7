// error 3:17: Color has no member 'gren'
enum Color { red, green }
const Color c = Color.gren;
