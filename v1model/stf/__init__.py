"""STF, p4c's language for packet tests: a parser, an executor on the embedded switch, a runner."""
