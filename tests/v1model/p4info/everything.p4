// One of each thing that P4Info describes. everything.p4info.txtpb beside this file is what
// p4c-bm2-ss 1.2.5.16 (--p4runtime-files) makes of it.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("example.org/port", string)
type bit<9> port_name_t;
@p4runtime_translation("example.org/vrf", 32)
type bit<10> vrf_t;
type bit<16> plain_t;
enum bit<8> level_t { low = 1, high = 200 }

@controller_header("packet_in")
@brief("from the switch")
header to_controller_t {
    bit<9> ingress_port;
    @id(9) bit<7> padding;
    plain_t reason;
}

@controller_header("packet_out")
header from_controller_t {
    bit<9> egress_port;
    @hidden bit<7> padding;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type_;
}

struct inner_t {
    bit<48> address;
    level_t level;
}

struct report_t {
    inner_t inner;
    int<8> signed_;
    bool flag;
    plain_t plain;
}

struct headers_t {
    to_controller_t packet_in;
    from_controller_t packet_out;
    ethernet_t ethernet;
}

struct metadata_t {
    vrf_t vrf;
    plain_t plain;
    level_t level;
    bit<8> colour;
    bit<128> address;
}

parser prs(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control verify_it(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

@name("global_name")
action shared(@name("renamed") bit<8> value) {}

control nested(inout headers_t hdr, inout metadata_t meta)(bit<32> cell_count) {
    @min_width(32)
    counter(cell_count, CounterType.packets_and_bytes) bytes_seen;
    register<bit<100>>(cell_count) cells;
    action count(bit<32> index) {
        bytes_seen.count(index);
    }
    table t {
        key = { hdr.ethernet.type_ : exact; }
        actions = { count; shared; NoAction; }
        size = 77;
    }
    apply {
        t.apply();
        cells.write(0, 1);
    }
}

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    nested(8) first;
    @name("renamed_instance") nested(16) second;
    direct_counter(CounterType.bytes) hits;
    direct_meter<bit<8>>(MeterType.packets) speed;
    @id(0x14000077) meter(5, MeterType.bytes) rates;
    register<level_t>(4) levels;
    @max_group_size(12) action_selector(HashAlgorithm.crc32, 128, 10) members;
    action_profile(64) profile;

    @brief("sets the way out")
    @description("and nothing else")
    action forward(@brief("where to") port_name_t port, vrf_t vrf, bit<48> mac) {
        std.egress_spec = (bit<9>)port;
        hdr.ethernet.dst = mac;
        speed.read(meta.colour);
    }
    @id(0x55) action fixed(@id(3) level_t level, bit<1> flag) {
        meta.level = level;
    }
    action direct_only() {
        meta.colour = 1;
    }

    @my_mark(1, "two", three)
    @structured[1, "x", true]
    @pairs[key = "value", n = 4]
    table everything {
        key = {
            meta.vrf : exact @name("vrf") @brief("the table to look in");
            meta.address : lpm;
            hdr.ethernet.src : ternary @format(MAC_ADDRESS);
            std.ingress_port : range @id(7);
            meta.plain : optional;
            hdr.ethernet.isValid() : exact;
            meta.level : exact;
        }
        actions = { forward; @tableonly fixed; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = hits;
        meters = speed;
        size = 4096;
        support_timeout = true;
    }
    table selected {
        key = { hdr.ethernet.dst : exact; hdr.ethernet.src : selector; meta.colour : selector; }
        actions = { forward; NoAction; }
        implementation = members;
    }
    table profiled {
        key = { hdr.ethernet.dst : exact; }
        actions = { forward; NoAction; }
        @name("in_place") implementation = action_profile(32);
    }
    table also_profiled {
        key = { hdr.ethernet.dst : exact; }
        actions = { NoAction; }
        implementation = profile;
    }
    table constant {
        key = { hdr.ethernet.type_ : exact; }
        actions = { fixed; NoAction; }
        const entries = { 0x800 : fixed(level_t.low, 1); }
        default_action = fixed(level_t.high, 0);
    }
    table initial {
        key = { hdr.ethernet.type_ : ternary; }
        actions = { direct_only; NoAction; }
        entries = { 0x800 &&& 0xff00 : direct_only; }
    }
    @hidden table unseen {
        key = { meta.colour : exact; }
        actions = { NoAction; }
    }
    apply {
        first.apply(hdr, meta);
        second.apply(hdr, meta);
        everything.apply();
        selected.apply();
        profiled.apply();
        also_profiled.apply();
        constant.apply();
        initial.apply();
        unseen.apply();
        shared(1);
        digest<report_t>(1, {{hdr.ethernet.src, meta.level}, 1, true, meta.plain});
        digest(1, {meta.colour, meta.address});
        rates.execute_meter(0, meta.colour);
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action forward() {}
    table everything {
        key = { std.egress_port : exact; }
        actions = { forward; NoAction; }
    }
    apply { everything.apply(); }
}

control compute(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control deparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}

@pkginfo(name="everything", version="1.0", organization="none", contact="nobody", url="example.org")
@platform_property(multicast_group_table_size=7)
@brief("all of it")
V1Switch(prs(), verify_it(), ingress(), egress(), compute(), deparser()) main;
