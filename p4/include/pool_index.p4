// Pool index: which blocks the controller has given slots, and where.
//
// pool_index: written by the controller. Hit: the block's first slot, its generation and its length;
// `metadata.present`, and `slot` that of this fragment. Miss: the block is not in the pool.
// The direct counter counts packets that hit: what the controller reads for its policy.
#ifndef WEIR_POOL_INDEX_P4
#define WEIR_POOL_INDEX_P4

control pool_index(
    inout headers_t headers,
    inout metadata_t metadata)
{
    direct_counter(CounterType.packets_and_bytes) block_hits;

    action locate(bit<32> base_slot, bit<32> generation, bit<16> fragments) {
        block_hits.count();
        // Out of range never happens with a sound controller; then the block counts as absent.
        metadata.present = headers.kv.fragment < fragments && headers.kv.fragments == fragments;
        metadata.slot = base_slot + (bit<32>) headers.kv.fragment;
        metadata.generation = generation;
    }

    table blocks {
        key = {
            headers.kv.key: exact @name("key");
        }
        actions = {
            locate;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        counters = block_hits;
        size = POOL_BLOCKS;
    }

    apply {
        blocks.apply();
        metadata.present = metadata.present && metadata.slot < POOL_SLOTS;
    }
}

#endif
