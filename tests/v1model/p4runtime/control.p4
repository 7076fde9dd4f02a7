// Every kind of P4Runtime entity in one small program.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("example.org/port", string)
type bit<9> named_port_t;

@p4runtime_translation("example.org/tag", 32)
type bit<16> wide_tag_t;

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> padding;
}

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> padding;
}

header flow_t {
    bit<8>   operation;
    bit<16>  kind;
    bit<32>  address;
    bit<128> key;
}

struct headers_t {
    packet_out_t packet_out;
    packet_in_t  packet_in;
    flow_t       flow;
}

struct metadata_t {
    bit<2> color;
}

struct learned_t {
    bit<32> address;
    bit<9>  port;
    bit<8>  is_new;
}

const bit<9> CPU_PORT = 510;

parser FlowParser(packet_in packet, out headers_t headers, inout metadata_t metadata,
                  inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_flow;
        }
    }
    state parse_packet_out {
        packet.extract(headers.packet_out);
        transition parse_flow;
    }
    state parse_flow {
        packet.extract(headers.flow);
        transition accept;
    }
}

control NoChecksum(inout headers_t headers, inout metadata_t metadata) {
    apply { }
}

control FlowIngress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard_metadata) {
    counter(16, CounterType.packets_and_bytes) kinds;
    meter(8, MeterType.packets) limits;
    register<bit<48>>(32) cells;
    direct_counter(CounterType.packets_and_bytes) index_hits;
    direct_meter<bit<2>>(MeterType.packets) color_meter;
    action_profile(16) hops;
    action_selector(HashAlgorithm.crc16, 32, 16) spread;

    action drop() {
        mark_to_drop(standard_metadata);
    }
    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
    }
    action forward_named(named_port_t port) {
        standard_metadata.egress_spec = (bit<9>) port;
    }
    action set_slot(bit<32> base, bit<16> generation) {
        headers.flow.address = base;
        headers.flow.kind = generation;
        standard_metadata.egress_spec = 4;
    }
    action tag(wide_tag_t value) {
        headers.flow.kind = (bit<16>) value;
    }
    action learn() {
        digest<learned_t>(1, {headers.flow.address, standard_metadata.ingress_port, 1});
    }
    action to_cpu() {
        standard_metadata.egress_spec = CPU_PORT;
    }
    action flood() {
        standard_metadata.mcast_grp = 7;
    }
    action mirror() {
        clone(CloneType.I2E, 5);
        standard_metadata.egress_spec = 1;
    }
    action color() {
        color_meter.read(metadata.color);
    }

    table index {
        key = { headers.flow.key: exact; }
        actions = { set_slot; @defaultonly NoAction; @tableonly drop; }
        default_action = NoAction();
        counters = index_hits;
        size = 8192;
    }
    table routes {
        key = { headers.flow.address: lpm; }
        actions = { drop; forward; forward_named; to_cpu; flood; mirror; learn; }
        default_action = drop();
        size = 64;
    }
    table acl {
        key = {
            headers.flow.kind: ternary @name("kind");
            headers.flow.address: range @name("address");
            headers.flow.operation: optional @name("operation");
        }
        actions = { NoAction; drop; tag; }
        const default_action = NoAction();
        size = 4;
    }
    table fixed {
        key = { headers.flow.operation: exact; }
        actions = { NoAction; learn; to_cpu; }
        const entries = {
            1: learn();
            2: to_cpu();
        }
    }
    table initial {
        key = { headers.flow.kind: exact; }
        actions = { NoAction; drop; }
        entries = {
            const 0xdead: drop();
            0xbeef: drop();
        }
        size = 8;
    }
    table aging {
        key = { headers.flow.address: exact; }
        actions = { NoAction; color; }
        support_timeout = true;
        meters = color_meter;
        size = 16;
    }
    table next_hop {
        key = { headers.flow.address: exact; }
        actions = { NoAction; forward; drop; }
        implementation = hops;
        size = 16;
    }
    table balanced {
        key = {
            headers.flow.kind: exact;
            headers.flow.address: selector;
        }
        actions = { NoAction; forward; drop; }
        implementation = spread;
        size = 16;
    }
    table named_ports {
        key = { (named_port_t) standard_metadata.ingress_port: exact @name("port"); }
        actions = { NoAction; tag; }
        size = 16;
    }
    table keyless {
        actions = { NoAction; drop; forward; }
        default_action = NoAction();
    }

    apply {
        if (headers.packet_out.isValid()) {
            bit<9> port = headers.packet_out.egress_port;
            headers.packet_out.setInvalid();
            if (port != 0) {  // 0: through the tables, as if it had come in by a port
                standard_metadata.egress_spec = port;
                exit;
            }
        }
        kinds.count((bit<32>) (headers.flow.operation & 15));
        cells.write(0, (bit<48>) headers.flow.address);
        limits.execute_meter((bit<32>) 0, metadata.color);
        initial.apply();
        routes.apply();
        acl.apply();
        index.apply();
        aging.apply();
        named_ports.apply();
        if (headers.flow.operation == 8) {
            next_hop.apply();
        } else if (headers.flow.operation == 9) {
            balanced.apply();
        }
        keyless.apply();
        fixed.apply();
    }
}

control FlowEgress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.egress_port == CPU_PORT) {
            headers.packet_in.setValid();
            headers.packet_in.ingress_port = standard_metadata.ingress_port;
            headers.packet_in.padding = 0;
        }
    }
}

control FlowDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.packet_in);
        packet.emit(headers.flow);
    }
}

V1Switch(FlowParser(), NoChecksum(), FlowIngress(), FlowEgress(), NoChecksum(), FlowDeparser()) main;
