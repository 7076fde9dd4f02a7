// Sketch of misses: a count-min sketch over the keys of values that had to come from their homes,
// and a report to the controller (reports.p4) when a key gets hot. It counts replies, not requests: a block that its home
// does not have is not worth a slot, and requests that were merged cost its home one reply; how many
// nodes waited for it is in the digest. Only a block's first fragment counts.
//
// A row's index is a slice of the key, which is a hash already: different slices are independent,
// as differently salted CRCs of it would not be. A cell is epoch ++ count; counts are halved from one
// epoch to the next, in passing, because the control plane can't write registers on BMv2.
//
// settings: the controller sets the count from which a key is reported, 0 for never; it is reported
// again at each power of two.
#ifndef WEIR_SKETCH_P4
#define WEIR_SKETCH_P4

control sketch_row(
    inout bit<16> count,
    in bit<32> index,
    in bit<16> epoch)
{
    register<bit<32>>(SKETCH_CELLS) cells;

    apply {
        bit<32> cell;
        cells.read(cell, index);
        bit<16> seen = cell[15:0];
        if (cell[31:16] + 1 == epoch) {
            seen = seen >> 1;
        } else if (cell[31:16] != epoch) {
            seen = 0;
        }
        seen = seen |+| 1;
        cells.write(index, epoch ++ seen);
        if (seen < count) {
            count = seen;
        }
    }
}

control sketch(
    in headers_t headers,
    inout metadata_t metadata,
    in standard_metadata_t standard_metadata)
{
    bit<16> threshold = 0;
    sketch_row() row_0;
    sketch_row() row_1;
    sketch_row() row_2;

    action report_from(bit<16> count) {
        threshold = count;
    }

    table settings {
        actions = {
            report_from;
        }
        default_action = report_from(2);
    }

    apply {
        if (headers.kv.op == OP_VALUE && !metadata.present && headers.kv.fragment == 0
            && headers.kv.flags & (FLAG_BYPASS | FLAG_FILL | FLAG_FROM_POOL) == 0) {
            settings.apply();
            bit<16> epoch = (bit<16>) (standard_metadata.ingress_global_timestamp >> SKETCH_EPOCH_SHIFT);
            bit<16> count = 0xffff;
            row_0.apply(count, headers.kv.key[31:0] & (SKETCH_CELLS - 1), epoch);
            row_1.apply(count, headers.kv.key[63:32] & (SKETCH_CELLS - 1), epoch);
            row_2.apply(count, headers.kv.key[95:64] & (SKETCH_CELLS - 1), epoch);
            if (threshold != 0 && (count == threshold || count > threshold && count & (count - 1) == 0)) {
                metadata.misses = count;
            }
        }
    }
}

#endif
