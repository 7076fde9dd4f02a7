// A program that uses most of the language and of v1model, for the tests of the front end.

#include <core.p4>
#include <v1model.p4>

#define STACK_SIZE 4

typedef bit<48> mac_t;
type bit<32> ipv4_t;

enum bit<16> ether_type_t {
    IPV4 = 0x0800,
    VLAN = 0x8100
}

enum verdict_t { FORWARD, DROP, PUNT }

error { BadVersion }

const bit<9> CPU_PORT = 255;
const bit<32> CELLS = 1 << 10;

header ethernet_t {
    mac_t dst;
    mac_t src;
    ether_type_t type;
}

header vlan_t {
    bit<3> priority;
    bit<1> drop_eligible;
    bit<12> id;
    ether_type_t type;
}

header ipv4_base_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> length;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    ipv4_t src;
    ipv4_t dst;
}

header options_t {
    varbit<320> data;
}

header tcp_t { bit<16> src; bit<16> dst; }
header udp_t { bit<16> src; bit<16> dst; }

header_union layer4_t {
    tcp_t tcp;
    udp_t udp;
}

header pair_t<T> { T first; T second; }

struct headers_t {
    ethernet_t ethernet;
    vlan_t[STACK_SIZE] vlans;
    ipv4_base_t ipv4;
    options_t options;
    layer4_t layer4;
    pair_t<bit<16>> pair;
}

struct metadata_t {
    @field_list(1, 2) bit<16> hash;
    @field_list(1) verdict_t verdict;
    tuple<bit<8>, bool> notes;
    bit<8> color;
}

struct digest_t { mac_t src; bit<9> port; }

bit<8> saturating_decrement(in bit<8> value, in bit<8> by = 1) {
    return value |-| by;
}

T pick<T>(in bool condition, in T yes, in T no) {
    if (condition) {
        return yes;
    }
    return no;
}

parser VlanParser(packet_in packet, inout vlan_t[STACK_SIZE] vlans, out ether_type_t type)(bool strict) {
    state start {
        packet.extract(vlans.next);
        type = vlans.last.type;
        verify(!strict || vlans.lastIndex < STACK_SIZE, error.StackOutOfBounds);
        transition select(vlans.last.type) {
            ether_type_t.VLAN: start;
            default: accept;
        }
    }
}

parser RouterParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t std) {
    VlanParser(true) vlan_parser;
    ether_type_t type;

    state start {
        packet.extract(hdr.ethernet);
        type = hdr.ethernet.type;
        meta = { hash = 0, verdict = verdict_t.FORWARD, ... };
        transition select(hdr.ethernet.type, std.ingress_port) {
            (ether_type_t.VLAN, _): parse_vlans;
            (ether_type_t.IPV4, 0 .. 254): parse_ipv4;
            (_, CPU_PORT): accept;
            default: reject;
        }
    }

    state parse_vlans {
        vlan_parser.apply(packet, hdr.vlans, type);
        transition select(type) {
            ether_type_t.IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        bit<4> version = packet.lookahead<bit<4>>();
        verify(version == 4, error.BadVersion);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.options, ((bit<32>)hdr.ipv4.ihl - 5) * 32);
        transition select(hdr.ipv4.protocol) {
            6: parse_tcp;
            17 &&& 0xFF: parse_udp;
            _: accept;
        }
    }

    state parse_tcp {
        packet.extract(hdr.layer4.tcp);
        transition accept;
    }

    state parse_udp {
        packet.extract(hdr.layer4.udp);
        packet.advance(0);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.length },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Count(in bit<32> index)(bit<32> size) {
    counter(size, CounterType.packets_and_bytes) packets;

    apply {
        packets.count(index);
    }
}

control Route(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    Count(CELLS) count;
    register<bit<32>>(CELLS) last_seen;
    direct_counter(CounterType.packets) hits;
    direct_meter<bit<8>>(MeterType.bytes) rates;
    action_selector(HashAlgorithm.crc16, 32w64, 32w16) choices;

    action drop() {
        mark_to_drop(std);
        exit;
    }

    action forward(inout bit<8> ttl, bit<9> port, mac_t dst) {
        std.egress_spec = port;
        hdr.ethernet.dst = dst;
        ttl = saturating_decrement(ttl);
        rates.read(meta.color);
    }

    action learn() {
        digest<digest_t>(1, { hdr.ethernet.src, std.ingress_port });
    }

    table sources {
        key = { hdr.ethernet.src: exact @name("src"); }
        actions = { learn; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 1024;
    }

    table routes {
        key = {
            hdr.ipv4.dst: lpm;
            hdr.ipv4.tos[7:2]: ternary;
            hdr.layer4.udp.isValid(): exact;
            std.ingress_port: range;
            meta.hash: selector;
        }
        actions = { forward(hdr.ipv4.ttl); drop; }
        default_action = drop;
        implementation = choices;
    }

    table filter {
        key = { hdr.ipv4.protocol: ternary; hdr.ipv4.ttl: optional; }
        actions = { forward(hdr.ipv4.ttl); drop; NoAction; }
        const entries = {
            (6 &&& 0xFE, 64): forward(4, 0x0000_0000_00FF);
            (17, _): drop();
            _: NoAction();
        }
        counters = hits;
        meters = rates;
    }

    apply {
        if (sources.apply().miss && hdr.ipv4.isValid()) {
            bit<32> seen;
            hash(meta.hash, HashAlgorithm.crc32, 16w0, { hdr.ipv4.src, hdr.ipv4.dst }, 32w1024);
            last_seen.read(seen, (bit<32>)meta.hash);
            last_seen.write((bit<32>)meta.hash, seen + 1);
            count.apply((bit<32>)meta.hash);
            switch (routes.apply().action_run) {
                forward: { meta.verdict = verdict_t.FORWARD; }
                drop: { meta.verdict = verdict_t.DROP; }
            }
            switch (hdr.ipv4.protocol) {
                6:
                17: { filter.apply(); }
                default: { }
            }
        }
        for (bit<8> i in 0 .. 3) {
            if (hdr.vlans[i].isValid() && hdr.vlans[i].id == 0) {
                break;
            }
            meta.hash[7:0] = meta.hash[15:8] ^ (i ++ 8w0)[15:8];
        }
        for (bit<8> j = 0; j < 4; j += 1) {
            meta.hash <<= 1;
        }
        hdr.vlans.push_front(1);
        hdr.vlans[0] = { 1, 0, 12w100, ether_type_t.IPV4 };
        hdr.pair = meta.verdict == verdict_t.PUNT ? { 1, 2 } : hdr.pair;
        hdr.pair.first = pick(meta.notes[1], hdr.pair.second, 16w7);
        clone_preserving_field_list(CloneType.I2E, 5, 1);
        log_msg("hash {} of {}", { meta.hash, hdr.ipv4.src });
    }
}

control Send(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.instance_type != 0) {
            truncate(64);
            hdr.options = {#};
            return;
        }
        std.priority = (bit<3>)(int<3>)-1;
        assert(hdr.ethernet.isValid() || !hdr.ipv4.isValid());
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.length },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlans);
        packet.emit(hdr);
    }
}

@pkginfo(name = "router", version = "1")
V1Switch(RouterParser(), Verify(), Route(), Send(), Update(), Deparse()) main;
