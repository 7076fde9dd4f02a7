// Pending table: merges requests for a fragment that is in flight already, and finds who waits for a
// reply. A cell belongs to one fragment: who claimed it, since when, and which ports wait. Each fragment
// has two cells, in two ways of the table: a single one would be another's too often, and then every node's
// request goes to the home.
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

    // Consecutive fragments of a block lie in consecutive cells. Keys are hashes: any slice will do.
    bit<32> fragment = (bit<32>) headers.kv.fragment;
    bit<32> first = (headers.kv.key[127:96] + fragment) & (PENDING_CELLS / 2 - 1);
    bit<32> second = PENDING_CELLS / 2 + ((headers.kv.key[95:64] + fragment) & (PENDING_CELLS / 2 - 1));
    bit<144> wanted = headers.kv.key ++ headers.kv.fragment;
    bit<48> now = standard_metadata.ingress_global_timestamp;
    bit<32> cell;
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

    action look(bit<32> at) {
        cell = at;
        pending_fragment.read(owner, cell);
        pending_since.read(since, cell);
        pending_waiters.read(waiting, cell);
    }

    action claim() {
        pending_fragment.write(cell, wanted);
        pending_since.write(cell, now);
    }

    apply {
        settings.apply();
        look(first);
        bool own = owner == wanted && waiting != 0;
        if (!own) {
            bool in_use = waiting != 0 && now - since < PENDING_TIMEOUT_US;
            look(second);
            own = owner == wanted && waiting != 0;
            if (!own && !in_use) {
                look(first);
            }
        }

        if (headers.kv.op == OP_GET) {
            waiters_t me = 0;
            if (standard_metadata.ingress_port < WAITER_PORTS) {
                me = (waiters_t) 1 << (bit<8>) standard_metadata.ingress_port;
            }
            bool fresh = now - since < PENDING_TIMEOUT_US;
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
