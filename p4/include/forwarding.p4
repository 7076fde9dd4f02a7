// Forwarding: carries out a packet's fate.
//
// routes: written by the controller. Hit: the next hop's MAC address and port; CPU_PORT for the
// controller's own address, to which answers alone pass. Miss: dropped.
#ifndef WEIR_FORWARDING_P4
#define WEIR_FORWARDING_P4

control forwarding(
    inout headers_t headers,
    inout metadata_t metadata,
    inout standard_metadata_t standard_metadata)
{
    action forward(mac_address_t next_hop, port_id_t port) {
        headers.ethernet.src_addr = headers.ethernet.dst_addr;
        headers.ethernet.dst_addr = next_hop;
        standard_metadata.egress_spec = port;
    }

    action no_route() {
        metadata.fate = fate_t.DROP;
        metadata.outcome = OUTCOME_NO_ROUTE;
    }

    table routes {
        key = {
            headers.ipv4.dst_addr: lpm @name("dst_addr");
        }
        actions = {
            forward;
            no_route;
        }
        default_action = no_route();
        size = 1024;
    }

    apply {
        if (metadata.fate == fate_t.ROUTE || metadata.to_homes) {
            if (!headers.ipv4.isValid()) {
                no_route();
            } else if (headers.ipv4.ttl <= 1) {
                metadata.fate = fate_t.DROP;
                metadata.outcome = OUTCOME_TTL_EXPIRED;
            } else if (metadata.to_homes) {
                headers.ipv4.ttl = headers.ipv4.ttl - 1;
            } else if (headers.kv.isValid() && (headers.kv.op == OP_HELLO || headers.kv.op == OP_EXPECT)) {
                // Hosts need not know where the controller is.
                standard_metadata.egress_spec = CPU_PORT;
            } else if (routes.apply().hit) {
                headers.ipv4.ttl = headers.ipv4.ttl - 1;
                // The controller takes HELLO, EXPECT, hints and what answers it; all else would only cost it time.
                bool asks = headers.kv.op == OP_STAT && headers.kv.flags & FLAG_HINT == 0;
                if (standard_metadata.egress_spec == CPU_PORT
                    && (!headers.kv.isValid() || headers.kv.op == OP_GET || headers.kv.op == OP_PUT
                        || asks || headers.kv.op == OP_LIST || headers.kv.op == OP_KEYS)) {
                    no_route();
                }
                // A value fetched for a slot has reached the switch that asked for it.
                if (standard_metadata.egress_spec == CPU_PORT && headers.kv.isValid()
                    && headers.kv.op == OP_VALUE && headers.kv.flags & FLAG_FILL != 0) {
                    metadata.fate = fate_t.DROP;
                    metadata.outcome = OUTCOME_FILL_ENDED;
                }
            }
        } else if (metadata.fate == fate_t.RETURN) {
            standard_metadata.egress_spec = standard_metadata.ingress_port;
        }

        // What another switch marked MERGED is a copy for those who wait here. Its addressee has one of its own.
        bool copy = metadata.outcome == OUTCOME_REPLY && headers.kv.flags & FLAG_MERGED != 0;
        if (copy && metadata.waiters == 0 && metadata.fate == fate_t.ROUTE) {
            metadata.fate = fate_t.DROP;
            metadata.outcome = OUTCOME_NO_ROUTE;
        }

        if (metadata.waiters != 0 && !metadata.to_homes && metadata.fate != fate_t.FAN_OUT) {
            // Whom the reply is addressed to gets it in any case.
            waiters_t addressed = 0;
            if (metadata.fate == fate_t.ROUTE && !copy && standard_metadata.egress_spec < WAITER_PORTS) {
                addressed = (waiters_t) 1 << (bit<8>) standard_metadata.egress_spec;
            }
            if (metadata.waiters != addressed) {
                metadata.waiters = metadata.waiters | addressed;
                metadata.addressed = addressed;
                metadata.fate = fate_t.FAN_OUT;
                metadata.outcome = OUTCOME_FANNED_OUT;
            }
        }

        if (metadata.fate == fate_t.FAN_OUT) {
            standard_metadata.mcast_grp = metadata.group;
        } else if (metadata.fate == fate_t.DROP) {
            mark_to_drop(standard_metadata);
        }
    }
}

#endif
