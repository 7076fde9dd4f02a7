// Checksums and the deparser. UDP's is made anew only where the switch rewrote what it covers;
// it must be right: receivers merge bursts of datagrams (GRO) only when it is.
#ifndef WEIR_CHECKSUMS_P4
#define WEIR_CHECKSUMS_P4

#define IPV4_CHECKSUM_FIELDS { \
        headers.ipv4.version, headers.ipv4.ihl, headers.ipv4.diffserv, headers.ipv4.total_len, \
        headers.ipv4.identification, headers.ipv4.flags, headers.ipv4.frag_offset, headers.ipv4.ttl, \
        headers.ipv4.protocol, headers.ipv4.src_addr, headers.ipv4.dst_addr }

#define UDP_CHECKSUM_FIELDS \
        headers.ipv4.src_addr, headers.ipv4.dst_addr, (bit<8>) 0, headers.ipv4.protocol, \
        headers.udp.length, headers.udp.src_port, headers.udp.dst_port, headers.udp.length, headers.kv

// A PUT's copies get a checksum of their own, which would hide damage from the homes: DURABLE might be lost, and a
// home would acknowledge what is not on its disk. A GET with a wrong one would have others wait for an answer
// that does not come: its home drops it. (0: the sender made none.)
// The sum over UDP's checksum, too, is compared with 0, not the sum over the rest with the checksum: where that
// comes out as 0000 senders write FFFF, because 0000 says that there is none (RFC 768).
control verify_checksums(inout headers_t headers, inout metadata_t metadata) {
    apply {
        verify_checksum(headers.ipv4.isValid(), IPV4_CHECKSUM_FIELDS,
            headers.ipv4.hdr_checksum, HashAlgorithm.csum16);
        verify_checksum(headers.value.isValid() && headers.kv.op == OP_PUT && headers.udp.checksum != 0,
            { UDP_CHECKSUM_FIELDS, headers.value, headers.udp.checksum }, metadata.zero, HashAlgorithm.csum16);
        verify_checksum(headers.kv.isValid() && headers.kv.op == OP_GET && headers.udp.checksum != 0,
            { UDP_CHECKSUM_FIELDS, headers.udp.checksum }, metadata.zero, HashAlgorithm.csum16);
    }
}

control update_checksums(inout headers_t headers, inout metadata_t metadata) {
    apply {
        update_checksum(headers.ipv4.isValid(), IPV4_CHECKSUM_FIELDS,
            headers.ipv4.hdr_checksum, HashAlgorithm.csum16);
        update_checksum(metadata.readdressed && headers.value.isValid(),
            { UDP_CHECKSUM_FIELDS, headers.value },
            headers.udp.checksum, HashAlgorithm.csum16);
        update_checksum(metadata.readdressed && !headers.value.isValid(),
            { UDP_CHECKSUM_FIELDS },
            headers.udp.checksum, HashAlgorithm.csum16);
    }
}

control weir_deparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers);
    }
}

#endif
