// The v1model architecture, as BMv2's simple_switch has it. What each extern means is told in
// https://github.com/p4lang/behavioral-model/blob/main/docs/simple_switch.md
//
// Programs choose a version of the architecture by defining V1MODEL_VERSION before they include
// this file: 20180101 (the default), or 20200408, from which on indexed externs take the type of
// their index as a parameter.

#ifndef _V1_MODEL_P4_
#define _V1_MODEL_P4_

#include "core.p4"

#ifndef V1MODEL_VERSION
#define V1MODEL_VERSION 20180101
#endif

#if V1MODEL_VERSION < 20180101 || V1MODEL_VERSION > 20200408
#error "this V1MODEL_VERSION is unknown: it must be from 20180101 to 20200408"
#endif

#define V1MODEL_METER_COLOR_GREEN  0
#define V1MODEL_METER_COLOR_YELLOW 1
#define V1MODEL_METER_COLOR_RED    2

const bit<32> __v1model_version = V1MODEL_VERSION;

match_kind {
    range,
    optional,   // an exact value, or any
    selector    // an input of the hash that chooses a member of a group (action_selector)
}

#if V1MODEL_VERSION >= 20200408
typedef bit<9> PortId_t;
#endif

@metadata @name("standard_metadata")
struct standard_metadata_t {
#if V1MODEL_VERSION >= 20200408
    PortId_t ingress_port;
    PortId_t egress_spec;                // where ingress wants the packet to go
    PortId_t egress_port;                // where it goes; valid in egress
#else
    bit<9>  ingress_port;
    bit<9>  egress_spec;
    bit<9>  egress_port;
#endif
    bit<32> instance_type;               // 0 normal, 1 ingress clone, 2 egress clone, 4 recirculated,
                                         // 5 replicated, 6 resubmitted
    bit<32> packet_length;               // bytes
    bit<32> enq_timestamp;               // microseconds
    bit<19> enq_qdepth;                  // packets
    bit<32> deq_timedelta;               // microseconds in the queue
    bit<19> deq_qdepth;
    bit<48> ingress_global_timestamp;    // microseconds
    bit<48> egress_global_timestamp;
    bit<16> mcast_grp;                   // multicast group, 0: none
    bit<16> egress_rid;                  // replication id of a multicast copy
    bit<1>  checksum_error;              // 1 after a verify_checksum that failed
    error   parser_error;
    bit<3>  priority;
}

enum CounterType {
    packets,
    bytes,
    packets_and_bytes
}

enum MeterType {
    packets,
    bytes
}

enum HashAlgorithm {
    crc32,
    crc32_custom,
    crc16,
    crc16_custom,
    random,
    identity,
    csum16,
    xor16
}

enum CloneType {
    I2E,
    E2E
}

// --- Stateful externs: an index at or beyond `size` changes nothing ---

#if V1MODEL_VERSION >= 20200408

extern counter<I> {
    counter(bit<32> size, CounterType type);
    void count(in I index);
}

extern meter<I> {
    meter(bit<32> size, MeterType type);
    /// `result` becomes one of V1MODEL_METER_COLOR_*.
    void execute_meter<T>(in I index, out T result);
}

extern register<T, I> {
    register(bit<32> size);
    void read(out T result, in I index);
    void write(in I index, in T value);
}

#else

extern counter {
    counter(bit<32> size, CounterType type);
    void count(in bit<32> index);
}

extern meter {
    meter(bit<32> size, MeterType type);
    /// `result` becomes one of V1MODEL_METER_COLOR_*.
    void execute_meter<T>(in bit<32> index, out T result);
}

extern register<T> {
    register(bit<32> size);
    void read(out T result, in bit<32> index);
    void write(in bit<32> index, in T value);
}

#endif

/// Counts the packets that hit each entry of the one table whose `counters` property names it.
extern direct_counter {
    direct_counter(CounterType type);
    void count();
}

/// Meters the packets that hit each entry of the one table whose `meters` property names it.
extern direct_meter<T> {
    direct_meter(MeterType type);
    void read(out T result);
}

/// A table's `implementation`: its entries share `size` action members.
extern action_profile {
    action_profile(bit<32> size);
}

/// As action_profile, but an entry may name a group, of which a hash over the table's `selector`
/// keys chooses the member.
extern action_selector {
    action_selector(HashAlgorithm algorithm, bit<32> size, bit<32> outputWidth);
}

// --- Functions ---

/// A number from lo to hi, both included.
extern void random<T>(out T result, in T lo, in T hi);

/// `result` becomes base + (hash(data) modulo max), or base where max is 0.
extern void hash<O, T, D, M>(out O result, in HashAlgorithm algo, in T base, in D data, in M max);

/// Sends `data` to the control plane (ingress only).
extern void digest<T>(in bit<32> receiver, in T data);

@deprecated("Please use mark_to_drop(standard_metadata) instead.")
extern void mark_to_drop();
/// Sets egress_spec to the drop port and mcast_grp to 0; later assignments to them undo it.
extern void mark_to_drop(inout standard_metadata_t standard_metadata);

@deprecated("Please use verify_checksum/update_checksum instead.")
extern Checksum16 {
    Checksum16();
    bit<16> get<D>(in D data);
}

extern void verify_checksum<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algo);
extern void update_checksum<T, O>(in bool condition, in T data, inout O checksum, HashAlgorithm algo);
/// The payload is what the parser did not extract.
extern void verify_checksum_with_payload<T, O>(in bool condition, in T data, in O checksum,
                                               HashAlgorithm algo);
extern void update_checksum_with_payload<T, O>(in bool condition, in T data, inout O checksum,
                                               HashAlgorithm algo);

// Metadata fields survive these where they carry @field_list(index, ...).
extern void clone(in CloneType type, in bit<32> session);
extern void clone_preserving_field_list(in CloneType type, in bit<32> session, bit<8> index);
extern void resubmit_preserving_field_list(bit<8> index);
extern void recirculate_preserving_field_list(bit<8> index);

@deprecated("Please use 'clone_preserving_field_list' instead")
extern void clone3<T>(in CloneType type, in bit<32> session, in T data);
@deprecated("Please use 'resubmit_preserving_field_list' instead")
extern void resubmit<T>(in T data);
@deprecated("Please use 'recirculate_preserving_field_list' instead")
extern void recirculate<T>(in T data);

/// Cuts the packet to `length` bytes.
extern void truncate(in bit<32> length);

extern void assert(in bool check);
extern void assume(in bool check);

extern void log_msg(string msg);
/// `msg` has one {} for each element of `data`.
extern void log_msg<T>(string msg, in T data);

// --- The pipeline ---

parser Parser<H, M>(packet_in b,
                    out H parsedHdr,
                    inout M meta,
                    inout standard_metadata_t standard_metadata);

control VerifyChecksum<H, M>(inout H hdr,
                             inout M meta);

control Ingress<H, M>(inout H hdr,
                      inout M meta,
                      inout standard_metadata_t standard_metadata);

control Egress<H, M>(inout H hdr,
                     inout M meta,
                     inout standard_metadata_t standard_metadata);

control ComputeChecksum<H, M>(inout H hdr,
                              inout M meta);

control Deparser<H>(packet_out b, in H hdr);

package V1Switch<H, M>(Parser<H, M> p,
                       VerifyChecksum<H, M> vr,
                       Ingress<H, M> ig,
                       Egress<H, M> eg,
                       ComputeChecksum<H, M> ck,
                       Deparser<H> dep);

#endif
