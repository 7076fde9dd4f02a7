// Rates: how many requests a port may send, in packets. `requests` are those that a home or the pool has to
// answer; `special`, of them, those that have the controller act (SUBSCRIBE) or a slot written again (REPAIR);
// `puts` are PUTs, which cost a home most. One that names several homes counts once: each home gets it once.
//
// Meters by ingress port, configured by the controller; one that is not lets everything pass.
#ifndef WEIR_RATES_P4
#define WEIR_RATES_P4

const bit<2> COLOR_GREEN = 0;

control rates(
    inout headers_t headers,
    inout metadata_t metadata,
    in standard_metadata_t standard_metadata)
{
    meter(METERED_PORTS, MeterType.packets) requests;
    meter(METERED_PORTS, MeterType.packets) special;
    meter(METERED_PORTS, MeterType.packets) puts;

    apply {
        if (headers.kv.op == OP_GET || headers.kv.op == OP_STAT || headers.kv.op == OP_LIST
            || headers.kv.op == OP_DELETE) {
            bit<2> color = COLOR_GREEN;
            requests.execute_meter<bit<2>>((bit<32>) standard_metadata.ingress_port, color);
            if (color != COLOR_GREEN) {
                metadata.fate = fate_t.DROP;
                metadata.outcome = OUTCOME_OVER_REQUESTS;
            } else if (headers.kv.op == OP_GET && headers.kv.flags & (FLAG_SUBSCRIBE | FLAG_REPAIR) != 0) {
                special.execute_meter<bit<2>>((bit<32>) standard_metadata.ingress_port, color);
                if (color != COLOR_GREEN) {
                    metadata.fate = fate_t.DROP;
                    metadata.outcome = OUTCOME_OVER_SPECIAL;
                }
            }
        } else if (headers.kv.op == OP_PUT) {
            bit<2> color = COLOR_GREEN;
            puts.execute_meter<bit<2>>((bit<32>) standard_metadata.ingress_port, color);
            if (color != COLOR_GREEN) {
                metadata.fate = fate_t.DROP;
                metadata.outcome = OUTCOME_OVER_REQUESTS;
            }
        }
    }
}

#endif
