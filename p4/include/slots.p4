// Slots: the pool's memory. One 512-byte value a slot, in two arrays because p4c's widest type has
// 2048 bits, and beside it the generation it was written under: a slot holds a fragment only if its
// generation is the entry's, so the controller may hand a slot to another block without touching it.
//
// All accesses are here and are made with an index below POOL_SLOTS: BMv2 does not check.
#ifndef WEIR_SLOTS_P4
#define WEIR_SLOTS_P4

control slots(
    inout headers_t headers,
    inout metadata_t metadata)
{
    register<bit<32>>(POOL_SLOTS) slot_generation;
    register<bit<48>>(POOL_SLOTS) slot_check;           // value_bytes ++ checksum
    register<value_cell_t>(POOL_SLOTS) slot_first;
    register<value_cell_t>(POOL_SLOTS) slot_second;

    counter(1, CounterType.packets) fills;

    action read_value() {
        bit<48> check;
        slot_check.read(check, metadata.slot);
        headers.value.setValid();
        slot_first.read(headers.value.first, metadata.slot);
        slot_second.read(headers.value.second, metadata.slot);
        headers.kv.value_bytes = check[47:32];
        headers.kv.checksum = check[31:0];
        headers.kv.generation = metadata.generation;
        headers.kv.hint_ms = 0;
        headers.udp.length = UDP_HEADER_BYTES + KV_HEADER_BYTES + VALUE_BYTES;
        headers.ipv4.total_len = IPV4_HEADER_BYTES + UDP_HEADER_BYTES + KV_HEADER_BYTES + VALUE_BYTES;
        metadata.readdressed = true;
    }

    action write_value() {
        slot_check.write(metadata.slot, headers.kv.value_bytes ++ headers.kv.checksum);
        slot_first.write(metadata.slot, headers.value.first);
        slot_second.write(metadata.slot, headers.value.second);
        slot_generation.write(metadata.slot, metadata.generation);
        fills.count(0);
    }

    // The packet becomes its own answer.
    action turn_round(bit<8> op) {
        mac_address_t mac = headers.ethernet.dst_addr;
        headers.ethernet.dst_addr = headers.ethernet.src_addr;
        headers.ethernet.src_addr = mac;
        ipv4_address_t address = headers.ipv4.dst_addr;
        headers.ipv4.dst_addr = headers.ipv4.src_addr;
        headers.ipv4.src_addr = address;
        headers.udp.dst_port = headers.udp.src_port;
        headers.udp.src_port = KV_PORT;
        headers.ipv4.ttl = 64;
        headers.kv.op = op;
        metadata.readdressed = true;
        metadata.fate = fate_t.RETURN;
    }

    action serve() {
        read_value();
        turn_round(OP_VALUE);
        headers.kv.flags = headers.kv.flags | FLAG_FROM_POOL;
        metadata.outcome = OUTCOME_SERVED;
    }

    action reclaim() {
        read_value();
        headers.kv.op = OP_PUT;
        headers.kv.flags = headers.kv.flags | FLAG_RECLAIM;
        metadata.outcome = OUTCOME_CONTROL;
    }

    action to_group() {
        metadata.group = headers.kv.sequence[15:0];
        metadata.waiters = ~(waiters_t) 0;      // the group alone says who
        metadata.fate = fate_t.FAN_OUT;
    }

    action push() {
        read_value();
        headers.kv.op = OP_VALUE;
        headers.kv.flags = headers.kv.flags | FLAG_FROM_POOL | FLAG_PUSHED;
        to_group();
        metadata.outcome = OUTCOME_CONTROL;
    }

    action invalidate() {
        slot_generation.write(metadata.slot, 0);
        metadata.fate = fate_t.RETURN;
        metadata.outcome = OUTCOME_CONTROL;
    }

    action refuse_control() {
        turn_round(OP_NOT_FOUND);
        metadata.outcome = OUTCOME_NOT_RESIDENT;
    }

    apply {
        if (metadata.present) {
            bit<32> stored;
            slot_generation.read(stored, metadata.slot);
            metadata.filled = stored == metadata.generation;
        }
        if (headers.kv.op == OP_GET) {
            // The controller's go to the home: it could not have the answer (egress in weir.p4).
            if (metadata.filled && headers.kv.flags & (FLAG_BYPASS | FLAG_FILL) == 0
                && metadata.role & ROLE_CONTROL == 0) {
                serve();
            }
        } else if (headers.kv.op == OP_VALUE) {
            // Fill on the way: the value passes anyway. Never one that fails its end-to-end check.
            if (metadata.present && !metadata.filled && headers.kv.flags & FLAG_BYPASS == 0) {
                bit<32> checksum;
                hash(checksum, HashAlgorithm.crc32, (bit<32>) 0,
                    { headers.kv.key, headers.kv.fragment, headers.kv.fragments, headers.kv.value_bytes,
                      headers.value.first, headers.value.second },
                    (bit<64>) 0x100000000);
                if (checksum == headers.kv.checksum) {
                    write_value();
                }
            }
            if (headers.kv.flags & FLAG_PUSHED != 0) {
                to_group();                     // pushed by another switch
                metadata.outcome = OUTCOME_FANNED_OUT;
            }
        } else if (headers.kv.op == OP_RECLAIM) {
            if (metadata.filled) {
                reclaim();
            } else {
                refuse_control();
            }
        } else if (headers.kv.op == OP_PUSH) {
            if (metadata.filled) {
                push();
            } else {
                refuse_control();
            }
        } else if (headers.kv.op == OP_INVALIDATE) {
            if (metadata.filled) {
                invalidate();
            } else {
                refuse_control();
            }
        } else if (headers.kv.op == OP_FILL) {
            headers.kv.op = OP_GET;
            headers.kv.flags = headers.kv.flags | FLAG_FILL;
            metadata.readdressed = true;
            metadata.outcome = OUTCOME_CONTROL;
        }
    }
}

#endif
