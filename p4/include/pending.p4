// Pending table: merges requests for a fragment that is in flight already, and finds who waits for a
// reply. A cell belongs to one fragment: who claimed it, since when, and which ports wait.
//
// Nothing wedges: a claim older than PENDING_TIMEOUT_US absorbs no more requests and can be taken over;
// a GET marked as a retry, or one that finds its own claim too old, is forwarded and keeps the waiters.
//
// settings: the controller turns merging on and off (off: every GET is forwarded, replies are unicast).
#ifndef WEIR_PENDING_P4
#define WEIR_PENDING_P4

control pending(
    inout headers_t headers,
    inout metadata_t metadata,
    in standard_metadata_t standard_metadata)
{
    register<bit<144>>(PENDING_CELLS) pending_fragment;     // key ++ fragment
    register<bit<48>>(PENDING_CELLS) pending_since;         // microseconds
    register<waiters_t>(PENDING_CELLS) pending_waiters;

    // Consecutive fragments of a block lie in consecutive cells.
    bit<32> cell = (headers.kv.key[127:96] + (bit<32>) headers.kv.fragment) & (PENDING_CELLS - 1);
    bit<144> wanted = headers.kv.key ++ headers.kv.fragment;
    bit<144> owner;
    bit<48> since;
    waiters_t waiting;

    bool merging = true;

    action merge(bit<1> on) {
        merging = on == 1;
    }

    table settings {
        actions = {
            merge;
        }
        default_action = merge(1);
    }

    action claim() {
        pending_fragment.write(cell, wanted);
        pending_since.write(cell, standard_metadata.ingress_global_timestamp);
    }

    apply {
        settings.apply();
        pending_fragment.read(owner, cell);
        pending_since.read(since, cell);
        pending_waiters.read(waiting, cell);
        bool own = owner == wanted && waiting != 0;

        if (headers.kv.op == OP_GET) {
            waiters_t me = 0;
            if (standard_metadata.ingress_port < WAITER_PORTS) {
                me = (waiters_t) 1 << (bit<8>) standard_metadata.ingress_port;
            }
            bool fresh = standard_metadata.ingress_global_timestamp - since < PENDING_TIMEOUT_US;
            bool again = headers.kv.flags & FLAG_RETRY != 0;
            if (!merging || headers.kv.flags & (FLAG_BYPASS | FLAG_FILL) != 0 || me == 0) {
                metadata.outcome = OUTCOME_UNMERGED;
            } else if (own) {
                pending_waiters.write(cell, waiting | me);
                if (fresh && !again) {
                    metadata.fate = fate_t.DROP;
                    metadata.outcome = OUTCOME_MERGED;
                } else {
                    claim();
                    metadata.outcome = OUTCOME_RETRIED;
                }
            } else if (waiting == 0 || !fresh) {
                claim();
                pending_waiters.write(cell, me);
                metadata.outcome = OUTCOME_CLAIMED;
            } else {
                metadata.outcome = OUTCOME_UNMERGED;
            }
        } else if (own && headers.kv.flags & (FLAG_BYPASS | FLAG_FILL) == 0) {
            // The answer to a FILL is the pool's own; who waits has a GET of its own under way.
            metadata.waiters = waiting;
            pending_waiters.write(cell, 0);
        }
    }
}

#endif
