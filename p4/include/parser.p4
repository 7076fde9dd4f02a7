// Parser: Ethernet, IPv4, UDP, and on KV_PORT the pool's protocol. What is malformed
// leaves with a parser error; ingress drops and counts it.
#ifndef WEIR_PARSER_P4
#define WEIR_PARSER_P4

error {
    BadIpv4Header,      // not version 4, options, or a total length that does not fit UDP's
    BadUdpFragment,     // a part of a datagram
    BadUdpPort,         // from another port than KV_PORT: who is asked would not answer
    BadKvVersion,
    BadKvLength,        // UDP's length is not the operation's, or the frame's is not UDP's
    BadKvFragment,      // fragment >= fragments, where the length may not be unknown
    BadKvValueBytes     // more than the value or the list has
}

parser weir_parser(
    packet_in packet,
    out headers_t headers,
    inout metadata_t metadata,
    inout standard_metadata_t standard_metadata)
{
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(headers.ipv4);
        verify(headers.ipv4.version == 4 && headers.ipv4.ihl == 5, error.BadIpv4Header);
        // Only whole datagrams (bit 0 of `flags` is "more fragments"): a host would put together of the parts
        // a message that no switch has checked.
        verify(headers.ipv4.protocol != IP_PROTOCOL_UDP
            || headers.ipv4.flags & 1 == 0 && headers.ipv4.frag_offset == 0, error.BadUdpFragment);
        transition select(headers.ipv4.protocol) {
            IP_PROTOCOL_UDP: parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(headers.udp);
        transition select(headers.udp.dst_port) {
            KV_PORT: check_version;
            default: accept;
        }
    }
    // Before the rest, which other versions lay out differently.
    state check_version {
        bit<8> version = packet.lookahead<bit<8>>();
        verify(version == KV_VERSION, error.BadKvVersion);
        transition parse_kv;
    }
    state parse_kv {
        packet.extract(headers.kv);
        verify(headers.udp.src_port == KV_PORT, error.BadUdpPort);
        verify(headers.ipv4.total_len == IPV4_HEADER_BYTES + headers.udp.length, error.BadIpv4Header);
        // Nothing behind the datagram: where short messages leave before long ones, none is longer than it says.
        verify(standard_metadata.packet_length == ETHERNET_HEADER_BYTES + (bit<32>) headers.ipv4.total_len,
            error.BadKvLength);
        transition select(headers.kv.op) {
            OP_VALUE: check_fragment_of_value;
            OP_PUT: check_fragment_of_value;
            OP_PUT_ACK: check_fragment;
            OP_FOUND: check_fragment;
            OP_DELETE: check_fragment;
            OP_DELETED: check_fragment;
            OP_RECLAIM: check_fragment;
            OP_FILL: check_fragment;
            OP_PUSH: check_fragment;
            default: check_unknown_length;
        }
    }
    state check_fragment_of_value {
        verify(headers.kv.fragment < headers.kv.fragments, error.BadKvFragment);
        transition parse_value;
    }
    state check_fragment {
        verify(headers.kv.fragment < headers.kv.fragments, error.BadKvFragment);
        transition check_no_value;
    }
    // Who does not know how long the block is says 0 fragments, and means the first.
    state check_unknown_length {
        verify(headers.kv.fragment < headers.kv.fragments
            || headers.kv.fragment == 0 && headers.kv.fragments == 0, error.BadKvFragment);
        transition select(headers.kv.op) {
            OP_HELLO: parse_list;
            OP_KEYS: parse_list;
            OP_EXPECT: parse_list;
            OP_MEMBERS: parse_list;
            default: check_no_value;
        }
    }
    state check_no_value {
        verify(headers.kv.value_bytes <= LIST_BYTES, error.BadKvValueBytes);
        verify(headers.udp.length == UDP_HEADER_BYTES + KV_HEADER_BYTES, error.BadKvLength);
        transition accept;
    }
    state parse_value {
        verify(headers.kv.value_bytes <= VALUE_BYTES, error.BadKvValueBytes);
        verify(headers.udp.length == UDP_HEADER_BYTES + KV_HEADER_BYTES + VALUE_BYTES, error.BadKvLength);
        packet.extract(headers.value);
        transition accept;
    }
    state parse_list {
        verify(headers.kv.value_bytes <= LIST_BYTES, error.BadKvValueBytes);
        verify(headers.udp.length == UDP_HEADER_BYTES + KV_HEADER_BYTES + LIST_BYTES, error.BadKvLength);
        packet.extract(headers.list);
        transition accept;
    }
}

#endif
