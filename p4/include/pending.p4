// Pending table: merges requests for a fragment that is in flight already, and finds who waits for a
// reply. A cell belongs to one request: what was asked and of whom, since when, and which ports wait. Only
// requests that are alike in all of it merge, and only what answers the one that claimed, or was the last
// retry, and comes from there, goes to those who wait or into a slot. Each fragment has two cells, in two
// ways of the table: a single one would be another's too often, and then every node's request goes to the
// home.
//
// Nothing wedges: a claim older than PENDING_TIMEOUT_US absorbs no more requests and can be taken over;
// a GET marked as a retry, or one that finds its own claim too old, is forwarded and keeps the waiters.
//
// A home answers a GET for a slot with that fragment and all behind it: one claim, that of fragment 0, is
// for the whole block, and its last fragment ends it.
//
// settings: the controller turns merging on and off (off: every GET is forwarded, replies are unicast).
#ifndef WEIR_PENDING_P4
#define WEIR_PENDING_P4

control pending(
    inout headers_t headers,
    inout metadata_t metadata,
    in standard_metadata_t standard_metadata)
{
    register<bit<168>>(PENDING_CELLS) pending_place;        // tenant ++ key ++ fragment ++ purpose
    register<bit<176>>(PENDING_CELLS) pending_asked;        // node ++ sequence ++ home ++ content ++ fragments
    register<bit<48>>(PENDING_CELLS) pending_since;         // microseconds
    register<waiters_t>(PENDING_CELLS) pending_waiters;

    // Consecutive fragments of a block lie in consecutive cells. Keys are hashes: any slice will do.
    bool fills = headers.kv.flags & FLAG_FILL != 0;
    bit<16> fragment = fills ? 16w0 : headers.kv.fragment;
    bit<32> first = (headers.kv.key[127:96] + (bit<32>) fragment) & (PENDING_CELLS / 2 - 1);
    bit<32> second = PENDING_CELLS / 2
        + ((headers.kv.key[95:64] + (bit<32>) fragment) & (PENDING_CELLS / 2 - 1));
    bit<48> now = standard_metadata.ingress_global_timestamp;

    // What is fetched for a slot, or to put one right, has claims of its own, and does not merge: they are
    // there to know the answer.
    bit<8> purpose;
    bit<168> place;
    ipv4_address_t home;
    bool is_reply;
    bool merging = true;

    bit<32> cell;
    bool own;
    bit<48> since;
    waiters_t waiting;

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
        bit<168> claimed;
        bit<176> asked;
        cell = at;
        pending_place.read(claimed, cell);
        pending_asked.read(asked, cell);
        pending_since.read(since, cell);
        pending_waiters.read(waiting, cell);
        // Who asked for 0, any write or any length, is answered by whichever there is. An answer to an
        // earlier question may be of before a deletion. What another switch marked MERGED answered one of
        // its own claims.
        bool answers = !is_reply || headers.kv.flags & FLAG_MERGED != 0
            || asked[175:112] == headers.ipv4.dst_addr ++ headers.kv.sequence;
        own = answers && waiting != 0 && claimed == place && asked[111:80] == home
            && (asked[79:16] == headers.kv.content || is_reply && asked[79:16] == 0)
            && (asked[15:0] == headers.kv.fragments || is_reply && asked[15:0] == 0);
    }

    // Nobody waits any more for an answer that may be of before a deletion. Who merged asks again.
    action dissolve(bit<8> of_purpose, bit<32> at) {
        bit<168> claimed;
        pending_place.read(claimed, at);
        pending_waiters.read(waiting, at);
        bool of_block = claimed == headers.kv.tenant ++ headers.kv.key ++ 16w0 ++ of_purpose;
        pending_waiters.write(at, of_block ? 0 : waiting);
    }

    action claim(waiters_t waiters) {
        pending_place.write(cell, place);
        pending_asked.write(cell, headers.ipv4.src_addr ++ headers.kv.sequence ++ home ++ headers.kv.content
            ++ headers.kv.fragments);
        pending_since.write(cell, now);
        pending_waiters.write(cell, waiters);
    }

    apply {
        bit<16> flags = headers.kv.flags;
        purpose = (bit<8>) ((flags & (FLAG_FILL | FLAG_REPAIR)) >> 4);
        place = headers.kv.tenant ++ headers.kv.key ++ fragment ++ purpose;
        is_reply = headers.kv.op == OP_VALUE && flags & FLAG_PUSHED == 0 || headers.kv.op == OP_NOT_FOUND
            || headers.kv.op == OP_REFUSED && headers.kv.generation == REFUSED_UNREADABLE;

        if (headers.kv.op == OP_DELETED) {
            // Every read begins with fragment 0, and so do fills: who asks from here on asks a home.
            bit<8> repair = (bit<8>) (FLAG_REPAIR >> 4);
            bit<8> fill = (bit<8>) (FLAG_FILL >> 4);
            dissolve(0, first);
            dissolve(0, second);
            dissolve(repair, first);
            dissolve(repair, second);
            dissolve(fill, first);
            dissolve(fill, second);
        } else if ((headers.kv.op == OP_GET || is_reply) && (flags & FLAG_BYPASS == 0 || flags & FLAG_REPAIR != 0)) {
            settings.apply();
            merging = merging && purpose == 0;
            home = is_reply ? headers.ipv4.src_addr : headers.ipv4.dst_addr;
            look(first);
            if (!own) {
                bool in_use = waiting != 0 && now - since < PENDING_TIMEOUT_US;
                look(second);
                if (!own && !in_use) {
                    look(first);
                }
            }

            if (is_reply) {
                if (own) {
                    metadata.awaited = true;
                    if (!fills || headers.kv.op != OP_VALUE
                        || headers.kv.fragment + 1 == headers.kv.fragments) {
                        pending_waiters.write(cell, 0);
                    }
                    if (merging) {
                        metadata.waiters = waiting;
                    }
                }
            } else {
                waiters_t me = 0;
                if (standard_metadata.ingress_port < WAITER_PORTS) {
                    me = (waiters_t) 1 << (bit<8>) standard_metadata.ingress_port;
                } else if (fills) {
                    me = 1;     // the pool itself
                }
                bool fresh = now - since < PENDING_TIMEOUT_US;
                if (me != 0 && own && merging && fresh && flags & FLAG_RETRY == 0) {
                    pending_waiters.write(cell, waiting | me);
                    metadata.fate = fate_t.DROP;
                    metadata.outcome = OUTCOME_MERGED;
                } else if (me != 0 && own) {
                    claim(waiting | me);
                    if (merging) {
                        metadata.outcome = OUTCOME_RETRIED;
                    }
                } else if (me != 0 && (waiting == 0 || !fresh)) {
                    claim(me);
                    if (merging) {
                        metadata.outcome = OUTCOME_CLAIMED;
                    }
                }
            }
        }
    }
}

#endif
