// Role check: which operations a port may send, and as whom. Without it any host could poison the pool,
// or have the answers to its requests sent to another.
//
// port_role: written by the controller, one entry a port: role bits, and the only IPv4 source address that
// may come from there. Miss: no role, and no IPv4 packet passes. Ports to switches and to the controller
// have no address of their own.
#ifndef WEIR_ROLE_CHECK_P4
#define WEIR_ROLE_CHECK_P4

// What a host sends has to reach any other: a GET that dies on its way would have others wait for its answer.
const bit<8> MIN_TTL = 32;

control role_check(
    inout headers_t headers,
    inout metadata_t metadata,
    in standard_metadata_t standard_metadata)
{
    ipv4_address_t source = 0;

    action set_role(bit<8> role, ipv4_address_t address) {
        metadata.role = role;
        source = address;
    }

    table port_role {
        key = {
            standard_metadata.ingress_port: exact @name("ingress_port");
        }
        actions = {
            set_role;
        }
        default_action = set_role(0, 0);
        size = 512;
    }

    apply {
        port_role.apply();
        bool is_host = metadata.role & (ROLE_TRUNK | ROLE_CONTROL) == 0;
        if (headers.ipv4.isValid() && is_host && headers.ipv4.src_addr != source) {
            metadata.fate = fate_t.DROP;
            metadata.outcome = OUTCOME_SPOOFED;
        } else if (headers.kv.isValid()) {
            bit<8> op = headers.kv.op;
            bit<8> needed = ROLE_CONTROL;
            bool writes = op == OP_PUT || op == OP_EXPECT;
            if (writes || op == OP_GET || op == OP_STAT || op == OP_HELLO || op == OP_DELETE) {
                needed = ROLE_REQUEST;
            } else if (op >= OP_VALUE && op <= OP_FOUND || op == OP_KEYS || op == OP_DELETED) {
                needed = ROLE_REPLY;
                if ((op == OP_DELETED || op == OP_FOUND) && metadata.role & ROLE_CONTROL != 0) {
                    needed = ROLE_CONTROL;              // to this switch, and to who asked for it
                }
            } else if (op == OP_LIST) {
                needed = ROLE_REQUEST | ROLE_REPLY;     // keys are for stores alone
            }
            bool known = op >= OP_GET && op <= OP_DELETED || op >= OP_RECLAIM && op <= OP_MEMBERS;
            // A host that asks in the pool's name could make a reply end in the switch.
            bool in_the_pools_name = is_host && needed == ROLE_REQUEST
                && headers.kv.flags & (FLAG_FILL | FLAG_RECLAIM) != 0;
            // Only another switch passes on what was pushed: a store's reply must not go to a whole group.
            bool forged_push = op == OP_VALUE && headers.kv.flags & FLAG_PUSHED != 0
                && metadata.role & ROLE_TRUNK == 0;
            // Who answers for all tenants writes for none: it could acknowledge its own PUTs.
            bool own_answer = is_host && writes && metadata.role & ROLE_REPLY != 0;
            if (headers.ipv4.ttl < MIN_TTL && metadata.role & ROLE_TRUNK == 0) {
                metadata.fate = fate_t.DROP;
                metadata.outcome = OUTCOME_TTL_EXPIRED;
            } else if (!known || metadata.role & needed != needed || in_the_pools_name || forged_push
                || own_answer) {
                metadata.fate = fate_t.DROP;
                metadata.outcome = OUTCOME_FORBIDDEN;
            }
        }
    }
}

#endif
