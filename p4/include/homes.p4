// Homes of a PUT: a node sends a block that is to be kept by several storage nodes once, and names them by
// number. The switch sends it to every port that leads to one of them; egress (replicas.p4) leaves in each copy
// the homes that are behind its port. A PUT that is sent again goes to its IPv4 destination, as any packet.
//
// first, second, third: written by the controller, alike: storage node -> port. Miss: the node that sent it finds
// out that this home does not acknowledge.
#ifndef WEIR_HOMES_P4
#define WEIR_HOMES_P4

const port_id_t NO_PORT = 511;

control home(
    in bit<8> store,
    in port_id_t ingress_port,
    inout waiters_t ports,
    inout port_id_t port)
{
    action leads_to(port_id_t to) {
        port = to;
    }

    table stores {
        key = {
            store: exact @name("store");
        }
        actions = {
            leads_to;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        size = MAX_STORES;
    }

    apply {
        port = NO_PORT;
        if (store != 0) {
            stores.apply();
        }
        if (port < WAITER_PORTS && port != ingress_port) {
            ports = ports | (waiters_t) 1 << (bit<8>) port;
        }
    }
}

control homes(
    inout headers_t headers,
    inout metadata_t metadata,
    inout standard_metadata_t standard_metadata)
{
    home() first;
    home() second;
    home() third;

    apply {
        if (headers.kv.flags & (FLAG_RETRY | FLAG_RECLAIM) == 0) {
            waiters_t ports = 0;
            port_id_t ingress_port = standard_metadata.ingress_port;
            first.apply(headers.kv.home_1, ingress_port, ports, metadata.home_port_1);
            second.apply(headers.kv.home_2, ingress_port, ports, metadata.home_port_2);
            third.apply(headers.kv.home_3, ingress_port, ports, metadata.home_port_3);
            if (ports != 0) {
                metadata.to_homes = true;
                metadata.waiters = ports;
                metadata.fate = fate_t.FAN_OUT;
                if (ports & (ports - 1) != 0) {
                    metadata.outcome = OUTCOME_REPLICATED;
                }
            }
        }
    }
}

#endif
