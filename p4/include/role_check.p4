// Role check: which operations a port may send. Without it any host could poison the pool.
//
// port_role: written by the controller, one entry a port. Miss: no role, and every packet of
// the protocol is dropped.
#ifndef WEIR_ROLE_CHECK_P4
#define WEIR_ROLE_CHECK_P4

control role_check(
    inout headers_t headers,
    inout metadata_t metadata,
    in standard_metadata_t standard_metadata)
{
    action set_role(bit<8> role) {
        metadata.role = role;
    }

    table port_role {
        key = {
            standard_metadata.ingress_port: exact @name("ingress_port");
        }
        actions = {
            set_role;
        }
        default_action = set_role(0);
        size = 512;
    }

    apply {
        port_role.apply();
        bit<8> needed = 0;
        if (headers.kv.op == OP_GET || headers.kv.op == OP_PUT) {
            needed = ROLE_REQUEST;
        } else if (headers.kv.op == OP_VALUE || headers.kv.op == OP_NOT_FOUND || headers.kv.op == OP_PUT_ACK) {
            needed = ROLE_REPLY;
        } else {
            needed = ROLE_CONTROL;
        }
        bool known = headers.kv.op >= OP_GET && headers.kv.op <= OP_PUT_ACK
            || headers.kv.op >= OP_INVALIDATE && headers.kv.op <= OP_PUSH;
        // A node that asks in the pool's name could make a reply end in the switch.
        bool in_the_pools_name = needed == ROLE_REQUEST && headers.kv.flags & (FLAG_FILL | FLAG_RECLAIM) != 0
            && metadata.role & ROLE_REPLY == 0;
        // Only another switch passes on what was pushed: a store's reply must not go to a whole group.
        bool forged_push = headers.kv.op == OP_VALUE && headers.kv.flags & FLAG_PUSHED != 0
            && metadata.role & ROLE_REQUEST == 0;
        if (!known || metadata.role & needed == 0 || in_the_pools_name || forged_push) {
            metadata.fate = fate_t.DROP;
            metadata.outcome = OUTCOME_FORBIDDEN;
        }
    }
}

#endif
