"""Pure rules that live nodes and the simulator share: gate, tiers, eviction, streaming."""
