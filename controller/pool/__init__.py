"""The pool of one switch: which blocks have entries and slots, and what becomes of them."""
