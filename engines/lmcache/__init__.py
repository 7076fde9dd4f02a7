"""LMCache's second-level storage: see `engines.lmcache.l2_adapter`."""
