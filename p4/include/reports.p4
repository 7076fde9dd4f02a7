// Reports: what the controller hears of. Digests of misses and of subscriptions, and packets for its own address:
// a port can cause so many of all of them together, or the controller would have no time for others.
//
// Meter by ingress port, configured by the controller; one that is not lets everything pass.
#ifndef WEIR_REPORTS_P4
#define WEIR_REPORTS_P4

struct hot_miss_t {
    tenant_t       tenant;
    block_key_t    key;
    bit<32>        parent;
    bit<16>        depth;
    bit<16>        chain_blocks;
    bit<16>        fragments;
    bit<16>        backlog_ms;      // the home's
    bit<16>        recompute_ms;    // what the node would pay without the block, as the home echoes it
    bit<16>        count;
    waiters_t      waiters;         // ports that this reply goes to
    ipv4_address_t home;
}

// A node that asks for the first block of a prefix may say that it wants to have pushed what else there is of it.
// The controller keeps the groups that OP_PUSH multicasts to; whether the request is then served, merged or
// forwarded makes no difference.
struct subscription_t {
    tenant_t    tenant;
    block_key_t key;
    bit<32>     parent;
    bit<16>     port;               // that asked
}

control reports(
    inout headers_t headers,
    inout metadata_t metadata,
    inout standard_metadata_t standard_metadata)
{
    meter(METERED_PORTS, MeterType.packets) to_controller;

    apply {
        bool to_cpu = metadata.fate != fate_t.DROP && metadata.fate != fate_t.FAN_OUT
            && standard_metadata.egress_spec == CPU_PORT;
        if (to_cpu || metadata.subscribed || metadata.misses != 0) {
            bit<2> color = COLOR_GREEN;
            to_controller.execute_meter<bit<2>>((bit<32>) standard_metadata.ingress_port, color);
            if (color == COLOR_GREEN) {
                if (metadata.misses != 0) {
                    digest<hot_miss_t>(1, {
                        headers.kv.tenant, headers.kv.key, headers.kv.parent, headers.kv.depth,
                        headers.kv.chain_blocks, headers.kv.fragments, headers.kv.backlog_ms,
                        headers.kv.recompute_ms, metadata.misses, metadata.waiters, headers.ipv4.src_addr });
                } else if (metadata.subscribed) {
                    digest<subscription_t>(1, {
                        headers.kv.tenant, headers.kv.key, headers.kv.parent,
                        (bit<16>) standard_metadata.ingress_port });
                }
            } else if (to_cpu) {
                metadata.outcome = OUTCOME_OVER_CONTROLLER;
                mark_to_drop(standard_metadata);
            }
        }
    }
}

#endif
