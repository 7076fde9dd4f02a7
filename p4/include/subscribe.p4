// Subscriptions: a node that asks for the first block of a prefix may say that it wants to have pushed what
// else there is of it. The controller hears of it and keeps the groups that OP_PUSH multicasts to; whether
// the request is then served, merged or forwarded makes no difference.
#ifndef WEIR_SUBSCRIBE_P4
#define WEIR_SUBSCRIBE_P4

struct subscription_t {
    block_key_t key;
    bit<32>     parent;
    bit<16>     port;       // that asked
}

control subscribe(
    in headers_t headers,
    in standard_metadata_t standard_metadata)
{
    apply {
        if (headers.kv.op == OP_GET && headers.kv.flags & FLAG_SUBSCRIBE != 0 && headers.kv.fragment == 0) {
            digest<subscription_t>(1, {
                headers.kv.key, headers.kv.parent, (bit<16>) standard_metadata.ingress_port });
        }
    }
}

#endif
