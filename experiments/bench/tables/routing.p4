/* What a router of SAI's kind does with a packet: admission by MAC address, an access list, a route by
 * longest prefix in a virtual router, a next hop. With EXACT instead: one exact match on the address. */
#include <core.p4>
#include <v1model.p4>

#ifndef ROUTES
#define ROUTES 10000
#endif
#ifndef RULES
#define RULES 500
#endif

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<6> dscp; bit<2> ecn; bit<16> length;
    bit<16> id; bit<3> flags; bit<13> offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum;
    bit<32> src; bit<32> dst;
}
header ports_t { bit<16> src; bit<16> dst; }

struct headers_t { ethernet_t ethernet; ipv4_t ipv4; ports_t ports; }
struct metadata_t { bit<16> vrf; bit<16> next_hop; bit<1> admitted; }

parser RouterParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) { 6: ports; 17: ports; default: accept; }
    }
    state ports { packet.extract(hdr.ports); transition accept; }
}

control RouterVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control RouterIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action drop() { mark_to_drop(std); }
    action forward(bit<9> port, bit<48> src, bit<48> dst) {
        std.egress_spec = port;
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

#ifdef EXACT
    table hosts {
        key = { hdr.ipv4.dst: exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = ROUTES;
    }
    apply { hosts.apply(); }
#else
    action admit(bit<16> vrf) { meta.admitted = 1; meta.vrf = vrf; }
    action set_next_hop(bit<16> next_hop) { meta.next_hop = next_hop; }
    action deny() { mark_to_drop(std); exit; }
    table my_station {
        key = { std.ingress_port: exact; hdr.ethernet.dst: exact; }
        actions = { admit; NoAction; }
        size = 64;
    }
    table access_list {
        key = {
            hdr.ipv4.src: ternary; hdr.ipv4.dst: ternary; hdr.ipv4.protocol: ternary; hdr.ipv4.dscp: ternary;
            hdr.ports.src: ternary; hdr.ports.dst: ternary;
        }
        actions = { deny; NoAction; }
        size = RULES;
    }
    table routes {
        key = { meta.vrf: exact; hdr.ipv4.dst: lpm; }
        actions = { set_next_hop; drop; }
        default_action = drop();
        size = ROUTES;
    }
    table next_hops {
        key = { meta.next_hop: exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 256;
    }
    apply {
        my_station.apply();
        if (meta.admitted == 1 && hdr.ipv4.isValid()) {
            access_list.apply();
            if (routes.apply().hit) { next_hops.apply(); }
        }
    }
#endif
}

control RouterEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }

control RouterCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), {
            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.length, hdr.ipv4.id,
            hdr.ipv4.flags, hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst
        }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(RouterParser(), RouterVerify(), RouterIngress(), RouterEgress(), RouterCompute(), RouterDeparser()) main;
