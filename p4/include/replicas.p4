// Replicas (egress): the multicast group holds every port; copies for ports that are not meant are
// dropped, and each remaining copy is addressed to its port's host.
//
// hosts: written by the controller, one entry for each port with a host behind it. Miss (a port
// to another switch): the copy keeps its address, and is marked unless that is where its addressee is.
// receivers: as port_tenants (tenant_check.p4). Nothing is pushed to a host of another tenant, whatever its group.
#ifndef WEIR_REPLICAS_P4
#define WEIR_REPLICAS_P4

const bit<32> INSTANCE_REPLICATION = 5;     // simple_switch's PKT_INSTANCE_TYPE_REPLICATION

control replicas(
    inout headers_t headers,
    inout metadata_t metadata,
    inout standard_metadata_t standard_metadata)
{
    bit<16> mark = FLAG_MERGED;

    action address(mac_address_t mac, ipv4_address_t ipv4) {
        headers.ethernet.dst_addr = mac;
        headers.ipv4.dst_addr = ipv4;
        headers.kv.flags = headers.kv.flags | mark;
        metadata.readdressed = true;
    }

    // That switch's own pending table goes on.
    action to_switch(bool addressed) {
        if (headers.kv.flags & FLAG_PUSHED != 0 && metadata.role & ROLE_CONTROL == 0) {
            // What another switch pushed ends at this one's hosts: groups can't make a loop.
            mark_to_drop(standard_metadata);
        } else if (!addressed) {
            headers.kv.flags = headers.kv.flags | mark;
            metadata.readdressed = true;
        }
    }

    // Of the homes that a PUT names, those that are behind the port.
    action keep_homes(port_id_t port) {
        headers.kv.home_1 = metadata.home_port_1 == port ? headers.kv.home_1 : 0;
        headers.kv.home_2 = metadata.home_port_2 == port ? headers.kv.home_2 : 0;
        headers.kv.home_3 = metadata.home_port_3 == port ? headers.kv.home_3 : 0;
        mark = 0;
    }

    table receivers {
        key = {
            standard_metadata.egress_port: exact @name("egress_port");
            headers.kv.tenant: exact @name("tenant");
        }
        actions = {
            NoAction;
        }
        default_action = NoAction();
        size = MAX_TENANT_PORTS;
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
            } else {
                if (metadata.to_homes) {
                    keep_homes(standard_metadata.egress_port);
                }
                if (!hosts.apply().hit) {
                    to_switch(metadata.addressed >> port & 1 == 1);
                } else if (headers.kv.flags & FLAG_PUSHED != 0 && headers.kv.tenant != TENANT_PUBLIC
                    && !receivers.apply().hit) {
                    mark_to_drop(standard_metadata);
                }
            }
        }
    }
}

#endif
