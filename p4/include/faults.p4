// Faults: loses a share of chosen packets of the protocol. Only compiled in with -D FAULTS, for tests
// and experiments that show what happens when replies, requests or acknowledgements get lost.
//
// losses: written by the experiment; matches on ingress port and operation. Miss: nothing is lost.
#ifndef WEIR_FAULTS_P4
#define WEIR_FAULTS_P4

control faults(
    inout headers_t headers,
    inout metadata_t metadata,
    in standard_metadata_t standard_metadata)
{
    bit<16> share = 0;

    action lose(bit<16> per_65536) {
        share = per_65536;
    }

    table losses {
        key = {
            standard_metadata.ingress_port: ternary @name("ingress_port");
            headers.kv.op: ternary @name("op");
        }
        actions = {
            lose;
        }
        default_action = lose(0);
        size = 64;
    }

    apply {
        if (metadata.fate != fate_t.DROP && losses.apply().hit) {
            bit<16> drawn;
            random(drawn, 0, 0xffff);
            // The full share loses all: 65535 of 65536 would let one through now and then.
            if (drawn < share || share == 0xffff) {
                metadata.fate = fate_t.DROP;
                metadata.outcome = OUTCOME_LOST;
            }
        }
    }
}

#endif
