// Slots: the pool's memory. One value a slot, in an array for each of its cells, and beside it its tag, its checksum and the write it belongs to. A block's slots hold one write
// at a time: `block_write` says which, under the generation of the block's entry, and a slot holds a fragment
// only if its own mark is the same. So the controller may hand slots to another block without touching them,
// and fragments of two writes of one key never stand beside each other.
//
// Slots are filled by what a home sends, or by the PUT that brings a block to its homes. What a PUT leaves does
// not count until a home tells the same host that it has made the block of it: a mark has the address of who put
// it, and that PUT_ACK writes `block_write`. So a pool has no write that no home has, and nobody can add to
// another's, whose content id is known to all who read it.
//
// All accesses are here and are made with indices that pool_index has checked: BMv2 does not.
#ifndef WEIR_SLOTS_P4
#define WEIR_SLOTS_P4

typedef bit<128> write_t;                       // writer ++ generation ++ content

const ipv4_address_t FROM_HOME = 0;             // as the writer of what a home sent
const ipv4_address_t DELETED = 0xffffffff;      // as the writer of what was deleted: no slot has it

register<write_t>(POOL_SLOTS) block_write;      // at the block's first slot
register<write_t>(POOL_SLOTS) slot_write;

// Whether the slot holds the fragment, and what a GET or STAT asks for.
control slot_lookup(
    inout headers_t headers,
    inout metadata_t metadata)
{
    apply {
        if (metadata.present) {
            write_t held;
            write_t stored;
            block_write.read(held, metadata.base_slot);
            slot_write.read(stored, metadata.slot);
            if (held[95:64] == metadata.generation) {
                metadata.content = held[63:0];
                metadata.writer = held[127:96];
                metadata.filled = metadata.content != 0 && stored == held;
            }
            // The controller's go to the home: it could not have the answer (egress in weir.p4).
            metadata.servable = metadata.filled && (headers.kv.op == OP_GET || headers.kv.op == OP_STAT)
                && headers.kv.flags & (FLAG_BYPASS | FLAG_FILL) == 0 && metadata.role & ROLE_CONTROL == 0
                && (headers.kv.content == 0 || headers.kv.content == metadata.content);
        }
    }
}

control slots(
    inout headers_t headers,
    inout metadata_t metadata)
{
    register<bit<48>>(POOL_SLOTS) slot_check;           // value_bytes ++ checksum
    register<bit<128>>(POOL_SLOTS) slot_tag;
#define CELL_REGISTER(n, type) register<type>(POOL_SLOTS) slot_cell_##n;
    EACH_CELL(CELL_REGISTER)

    counter(POOL_SLOTS, CounterType.packets) block_hits;    // at the block's first slot: fragments served
    counter(3, CounterType.packets) fills;                  // slots filled; slots put right; slots that a PUT left

    action read_value() {
        bit<48> check;
        slot_check.read(check, metadata.slot);
        slot_tag.read(headers.kv.tag, metadata.slot);
        headers.value.setValid();
#define READ_CELL(n, type) slot_cell_##n.read(headers.value.cell_##n, metadata.slot);
        EACH_CELL(READ_CELL)
        headers.kv.value_bytes = check[47:32];
        headers.kv.checksum = check[31:0];
        headers.kv.generation = metadata.generation;
        headers.kv.content = metadata.content;
        headers.kv.fragments = metadata.fragments;
        headers.kv.backlog_ms = 0;
        headers.udp.length = UDP_HEADER_BYTES + KV_HEADER_BYTES + VALUE_BYTES;
        headers.ipv4.total_len = IPV4_HEADER_BYTES + UDP_HEADER_BYTES + KV_HEADER_BYTES + VALUE_BYTES;
        metadata.readdressed = true;
    }

    action write_slot(write_t write) {
        slot_write.write(metadata.slot, write);
        slot_check.write(metadata.slot, headers.kv.value_bytes ++ headers.kv.checksum);
        slot_tag.write(metadata.slot, headers.kv.tag);
#define WRITE_CELL(n, type) slot_cell_##n.write(metadata.slot, headers.value.cell_##n);
        EACH_CELL(WRITE_CELL)
    }

    action write_value(ipv4_address_t writer) {
        write_t write = writer ++ metadata.generation ++ headers.kv.content;
        block_write.write(metadata.base_slot, write);
        write_slot(write);
    }

    action keep_put() {
        write_slot(headers.ipv4.src_addr ++ metadata.generation ++ headers.kv.content);
        fills.count(2);
    }

    action let_puts_count() {
        block_write.write(metadata.base_slot,
            headers.ipv4.dst_addr ++ metadata.generation ++ headers.kv.content);
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
        block_hits.count(metadata.base_slot);
        metadata.outcome = OUTCOME_SERVED;
    }

    action tell() {
        turn_round(OP_FOUND);
        headers.kv.flags = headers.kv.flags | FLAG_FROM_POOL;
        headers.kv.generation = metadata.generation;
        headers.kv.content = metadata.content;
        headers.kv.fragments = metadata.fragments;
        headers.kv.backlog_ms = 0;
        headers.kv.recompute_ms = 0;            // what a home has promised to others: here nobody waits
        metadata.outcome = OUTCOME_TOLD;
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

    // All slots of the block are empty from here on, and what was deleted does not fill them again.
    action forget_write(bit<64> content) {
        block_write.write(metadata.base_slot, DELETED ++ metadata.generation ++ content);
        slot_write.write(metadata.base_slot, 0);
    }

    action refuse_control() {
        turn_round(OP_NOT_FOUND);
        metadata.outcome = OUTCOME_NOT_RESIDENT;
    }

    apply {
        if (metadata.servable && headers.kv.op == OP_STAT) {
            tell();
        } else if (metadata.servable) {
            serve();
        } else if (headers.kv.op == OP_VALUE || headers.kv.op == OP_PUT) {
            // Fill on the way: the value passes anyway. Of what homes send only what was asked for, of the write
            // that the block's slots hold; what was asked for to put a slot right begins with its own, and so
            // does what a slot lacks of a write that was put: who reads has it of another home. Of what nodes
            // send only what goes to a block that holds nothing yet. Never what fails its checksum.
            bool puts = headers.kv.op == OP_PUT;
            bool repairs = headers.kv.flags & FLAG_REPAIR != 0;
            bool bypasses = headers.kv.flags & FLAG_BYPASS != 0;
            bool same = metadata.content == headers.kv.content;
            bool was_deleted = metadata.writer == DELETED && same;
            bool open = metadata.content == 0 || metadata.writer != FROM_HOME || same;
            bool from_home = metadata.awaited && !was_deleted && (repairs || !bypasses && !metadata.filled && open);
            bool from_node = (metadata.content == 0 || metadata.writer == DELETED && !same)
                && headers.kv.flags & FLAG_RECLAIM == 0;
            if (metadata.present && headers.kv.content != 0 && (puts ? from_node : from_home)) {
                bit<32> checksum;
                hash(checksum, HashAlgorithm.crc32, (bit<32>) 0,
                    { headers.kv.tenant, headers.kv.fragment, headers.kv.fragments, headers.kv.value_bytes,
                      headers.kv.content, headers.kv.key, headers.kv.tag, headers.value },
                    (bit<64>) 0x100000000);
                if (checksum == headers.kv.checksum) {
                    if (puts) {
                        keep_put();
                    } else {
                        write_value(same ? metadata.writer : FROM_HOME);
                        fills.count((bit<32>) (bit<1>) repairs);
                    }
                }
            }
            if (!puts && headers.kv.flags & FLAG_PUSHED != 0) {
                to_group();                     // pushed by another switch
                metadata.outcome = OUTCOME_FANNED_OUT;
            }
        } else if (headers.kv.op == OP_PUT_ACK) {
            bit<16> made = FLAG_HELD | FLAG_CREATED;
            bool vacant = metadata.content == 0
                || metadata.writer == DELETED && metadata.content != headers.kv.content;
            if (metadata.present && vacant && headers.kv.content != 0
                && headers.kv.flags & (made | FLAG_RECLAIM) == made) {
                let_puts_count();
            }
        } else if (headers.kv.op == OP_DELETED) {
            // Also where none of it counts yet: what makes it count may come late. The controller's is of whatever
            // write is here: who had the block deleted may not know of it.
            bool any = metadata.role & ROLE_CONTROL != 0 && headers.kv.flags & FLAG_HELD == 0;
            bit<64> content = metadata.content != 0 ? metadata.content : headers.kv.content;
            if (metadata.present && content != 0 && (any || content == headers.kv.content)) {
                forget_write(content);
            }
            if (any) {
                metadata.fate = fate_t.RETURN;
                metadata.outcome = OUTCOME_CONTROL;
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
        }
    }
}

#endif
