// Pool index: which blocks the controller has given slots, and where.
//
// blocks: written by the controller. Hit: the block's first slot, its generation and its length;
// `metadata.present`, and `slot` that of this fragment, or of the last for a STAT. Miss: the block is not in the pool.
#ifndef WEIR_POOL_INDEX_P4
#define WEIR_POOL_INDEX_P4

control pool_index(
    inout headers_t headers,
    inout metadata_t metadata)
{
    action locate(bit<32> base_slot, bit<32> generation, bit<16> fragments) {
        metadata.base_slot = base_slot;
        metadata.slot = base_slot + (bit<32>) headers.kv.fragment;
        metadata.generation = generation;
        metadata.fragments = fragments;
        metadata.present = true;
    }

    table blocks {
        key = {
            headers.kv.tenant: exact @name("tenant");
            headers.kv.key: exact @name("key");
        }
        actions = {
            locate;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        size = POOL_BLOCKS;
    }

    apply {
        blocks.apply();
        if (headers.kv.op == OP_STAT) {
            // About all of the block: slots fill from the first on, mostly.
            metadata.slot = metadata.base_slot + (bit<32>) (metadata.fragments - 1);
        }
        // A GET for a block of unknown length, or a STAT, asks for 0 fragments. What is deleted may have another
        // length here. Slots out of range never happen with a sound controller; then the block counts as absent.
        metadata.present = metadata.present && headers.kv.fragment < metadata.fragments
            && (headers.kv.fragments == metadata.fragments || headers.kv.fragments == 0
                || headers.kv.op == OP_DELETED)
            && metadata.base_slot < POOL_SLOTS && metadata.slot < POOL_SLOTS;
    }
}

#endif
