// What is on the wire, outermost first. packet_in stands before Ethernet on the CPU port only; a
// PacketOut has no header of its own: what the controller sends enters the pipeline at CPU_PORT.
#ifndef WEIR_HEADERS_P4
#define WEIR_HEADERS_P4

typedef bit<48>   mac_address_t;
typedef bit<32>   ipv4_address_t;
typedef bit<9>    port_id_t;
typedef bit<128>  block_key_t;
typedef bit<2048> value_cell_t;     // p4c's widest type: a value is two of them

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8>  IP_PROTOCOL_UDP = 17;
const bit<16> IPV4_HEADER_BYTES = 20;
const bit<16> UDP_HEADER_BYTES = 8;

@controller_header("packet_in")
header packet_in_t {
    bit<16> ingress_port;
}

header ethernet_t {
    mac_address_t dst_addr;
    mac_address_t src_addr;
    bit<16>       ether_type;
}

header ipv4_t {
    bit<4>         version;
    bit<4>         ihl;
    bit<8>         diffserv;
    bit<16>        total_len;
    bit<16>        identification;
    bit<3>         flags;
    bit<13>        frag_offset;
    bit<8>         ttl;
    bit<8>         protocol;
    bit<16>        hdr_checksum;
    ipv4_address_t src_addr;
    ipv4_address_t dst_addr;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

// 48 bytes. See docs/protocol.md.
header kv_t {
    bit<8>      version;
    bit<8>      op;
    bit<16>     flags;
    block_key_t key;                // BLAKE2b-128 over the chain: an address, not a content hash
    bit<16>     fragment;           // 0 .. fragments-1
    bit<16>     fragments;          // the block's length in fragments
    bit<32>     generation;         // of the slot that served it; 0 from a storage node
    bit<32>     sequence;           // chosen by who asks, echoed by who answers
    bit<16>     depth;              // the block's place in its chain, 0 first
    bit<16>     chain_blocks;       // the chain's length
    bit<32>     parent;             // first 32 bits of the parent's key, 0 for none
    bit<16>     value_bytes;        // meaningful bytes of the value, 0 .. 512
    bit<16>     hint_ms;            // GET: what recomputing the block costs; replies: the sender's backlog
    bit<32>     checksum;           // CRC-32 of key, fragment, fragments, value_bytes and the 512 bytes of value
}

header value_t {
    value_cell_t first;
    value_cell_t second;
}

struct headers_t {
    packet_in_t packet_in;
    ethernet_t  ethernet;
    ipv4_t      ipv4;
    udp_t       udp;
    kv_t        kv;
    value_t     value;
}

#endif
