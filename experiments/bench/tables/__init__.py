"""make bench WHAT=tables: what large tables cost, in the embedded switch alone and beside BMv2."""
