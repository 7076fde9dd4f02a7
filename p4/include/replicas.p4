// Replicas (egress): the multicast group holds every port; copies for ports that do not wait are
// dropped, and each remaining copy is addressed to its port's host.
//
// hosts: written by the controller, one entry for each port with a host behind it. Miss (a port
// to another switch): the copy keeps its address, and is marked unless that is where its addressee is.
#ifndef WEIR_REPLICAS_P4
#define WEIR_REPLICAS_P4

const bit<32> INSTANCE_REPLICATION = 5;     // simple_switch's PKT_INSTANCE_TYPE_REPLICATION

control replicas(
    inout headers_t headers,
    inout metadata_t metadata,
    inout standard_metadata_t standard_metadata)
{
    action address(mac_address_t mac, ipv4_address_t ipv4) {
        headers.ethernet.dst_addr = mac;
        headers.ipv4.dst_addr = ipv4;
        headers.kv.flags = headers.kv.flags | FLAG_MERGED;
        metadata.readdressed = true;
    }

    // That switch's own pending table goes on.
    action to_switch(bool addressed) {
        if (headers.kv.flags & FLAG_PUSHED != 0 && metadata.role & ROLE_CONTROL == 0) {
            // What another switch pushed ends at this one's hosts: groups can't make a loop.
            mark_to_drop(standard_metadata);
        } else if (!addressed) {
            headers.kv.flags = headers.kv.flags | FLAG_MERGED;
            metadata.readdressed = true;
        }
    }

    table hosts {
        key = {
            standard_metadata.egress_port: exact @name("egress_port");
        }
        actions = {
            address;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        size = 512;
    }

    apply {
        if (standard_metadata.instance_type == INSTANCE_REPLICATION) {
            bit<8> port = (bit<8>) standard_metadata.egress_port;
            if (metadata.waiters >> port & 1 == 0) {
                mark_to_drop(standard_metadata);
            } else if (!hosts.apply().hit) {
                to_switch(metadata.addressed >> port & 1 == 1);
            }
        }
    }
}

#endif
