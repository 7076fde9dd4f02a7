// What is on the wire, outermost first. packet_in stands before Ethernet on the CPU port only; a
// PacketOut has no header of its own: what the controller sends enters the pipeline at CPU_PORT.
#ifndef WEIR_HEADERS_P4
#define WEIR_HEADERS_P4

typedef bit<48>   mac_address_t;
typedef bit<32>   ipv4_address_t;
typedef bit<9>    port_id_t;
typedef bit<128>  block_key_t;
typedef bit<16>   tenant_t;
typedef bit<64>   content_t;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8>  IP_PROTOCOL_UDP = 17;
const bit<32> ETHERNET_HEADER_BYTES = 14;
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

// 80 bytes. See docs/protocol.md. The checksum covers all behind it, the value included.
header kv_t {
    bit<8>      version;
    bit<8>      op;
    bit<16>     flags;
    bit<16>     backlog_ms;         // replies of a home: how long what waits there takes to leave
    bit<16>     recompute_ms;       // GET: what recomputing the block would cost, 0 unknown; echoed
    bit<32>     sequence;           // chosen by who asks, echoed by who answers
    bit<32>     generation;         // of the slot that served it; 0 from a storage node; REFUSED: the reason
    bit<16>     depth;              // the block's place in its chain, 0 first
    bit<16>     chain_blocks;       // the chain's length; HELLO, MEMBERS: the size of values, 0 for 512
    bit<32>     parent;             // first 32 bits of the parent's key, 0 for none
    bit<8>      home_1;             // storage nodes by number, 0 for none. PUT: who shall keep it;
    bit<8>      home_2;             // replies: who keeps it
    bit<8>      home_3;
    bit<8>      epoch;              // of the sender's list of members, modulo 256
    bit<32>     checksum;           // CRC-32 of what follows, the whole value or list included; 0 without one
    tenant_t    tenant;
    bit<16>     fragment;           // 0 .. fragments-1
    bit<16>     fragments;          // the block's length in fragments; GET of fragment 0: 0 for unknown
    bit<16>     value_bytes;        // meaningful bytes of the value or list
    content_t   content;            // of the write that the value belongs to; GET: 0 for any
    block_key_t key;                // keyed BLAKE2b-128 over the chain: an address, not a content hash
    bit<128>    tag;                // keyed BLAKE2b-128 of tenant to key and the value; 0 without a value
}

#define CELL_FIELD(n, type) type cell_##n;
header value_t {
    EACH_CELL(CELL_FIELD)
}

header list_t {
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
    list_t      list;
}

#endif
