"""The storage node: blocks in DRAM and on SSD, replicas, membership."""
