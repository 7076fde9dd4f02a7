"""What the compiler says of every v1model program below a folder."""
