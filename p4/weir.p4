// Weir: a switch that holds a pool of LLM KV cache.
//
// Hot blocks lie in register arrays and are served from there; requests for a fragment that is in
// flight already are merged, and the reply goes to all who wait. Everything else is IPv4.
// docs/pipeline.md walks through it; include/protocol.p4 has the protocol's constants.

#include <core.p4>
#include <v1model.p4>

#include "include/sizes.p4"
#include "include/cells.p4"
#include "include/protocol.p4"
#include "include/headers.p4"
#include "include/metadata.p4"
#include "include/parser.p4"
#include "include/role_check.p4"
#ifdef FAULTS
#include "include/faults.p4"
#endif
#include "include/tenant_check.p4"
#include "include/rates.p4"
#include "include/pool_index.p4"
#include "include/slots.p4"
#include "include/sketch.p4"
#include "include/pending.p4"
#include "include/homes.p4"
#include "include/forwarding.p4"
#include "include/reports.p4"
#include "include/replicas.p4"
#include "include/checksums.p4"

control ingress(
    inout headers_t headers,
    inout metadata_t metadata,
    inout standard_metadata_t standard_metadata)
{
    counter(OUTCOMES, CounterType.packets_and_bytes) outcomes;

    role_check() roles;
    tenant_check() tenants;
    rates() limits;
    pool_index() index;
    slot_lookup() lookup;
    pending() in_flight;
    slots() pool;
    sketch() misses;
    homes() copies;
    forwarding() routing;
    reports() controller;
#ifdef FAULTS
    faults() injected;
#endif

    apply {
        metadata.fate = fate_t.ROUTE;
        metadata.outcome = OUTCOME_FORWARDED;
        metadata.group = MULTICAST_WAITERS;

        if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            metadata.fate = fate_t.DROP;
            metadata.outcome = OUTCOME_MALFORMED;
        } else {
            roles.apply(headers, metadata, standard_metadata);
        }
        if (headers.kv.isValid() && metadata.fate != fate_t.DROP) {
            tenants.apply(headers, metadata, standard_metadata);
#ifdef FAULTS
            injected.apply(headers, metadata, standard_metadata);
#endif
            if (metadata.fate != fate_t.DROP) {
                limits.apply(headers, metadata, standard_metadata);
            }
        }
        if (headers.kv.isValid() && metadata.fate != fate_t.DROP) {
            bit<8> op = headers.kv.op;
            metadata.subscribed = op == OP_GET && headers.kv.flags & FLAG_SUBSCRIBE != 0
                && headers.kv.fragment == 0;
            bool writes = op == OP_PUT || op == OP_PUT_ACK;
            if (writes) {
                metadata.outcome = OUTCOME_PUT;
            }
            if (op == OP_PUT) {
                copies.apply(headers, metadata, standard_metadata);
            }
            if (writes || op == OP_GET || op == OP_VALUE || op == OP_NOT_FOUND || op == OP_REFUSED
                || op == OP_STAT || op == OP_DELETED || op >= OP_RECLAIM && op <= OP_PUSH) {
                index.apply(headers, metadata);
                lookup.apply(headers, metadata);
                if (op == OP_GET) {
                    metadata.outcome = OUTCOME_UNMERGED;
                } else if (op == OP_FILL) {
                    // From here on it is a GET in the pool's name.
                    headers.kv.op = OP_GET;
                    headers.kv.flags = headers.kv.flags | FLAG_FILL;
                    metadata.readdressed = true;
                    metadata.outcome = OUTCOME_CONTROL;
                } else if (op == OP_STAT || op == OP_DELETED) {
                    metadata.outcome = OUTCOME_MESSAGE;
                } else if (!writes) {
                    metadata.outcome = OUTCOME_REPLY;
                }
                if (!metadata.servable) {
                    in_flight.apply(headers, metadata, standard_metadata);
                }
                pool.apply(headers, metadata);
                misses.apply(headers, metadata, standard_metadata);
            } else {
                metadata.outcome = OUTCOME_MESSAGE;
            }
        }
        routing.apply(headers, metadata, standard_metadata);
        controller.apply(headers, metadata, standard_metadata);
        outcomes.count(metadata.outcome);
    }
}

control egress(
    inout headers_t headers,
    inout metadata_t metadata,
    inout standard_metadata_t standard_metadata)
{
    replicas() waiters;

    apply {
        waiters.apply(headers, metadata, standard_metadata);
        if (standard_metadata.egress_port == CPU_PORT) {
            if (metadata.readdressed && headers.value.isValid()) {
                // A packet grows by 512 bytes at most: BMv2 has no room for a value from a slot and packet_in.
                mark_to_drop(standard_metadata);
            } else {
                headers.packet_in.setValid();
                headers.packet_in.ingress_port = (bit<16>) standard_metadata.ingress_port;
            }
        }
    }
}

V1Switch(weir_parser(), verify_checksums(), ingress(), egress(), update_checksums(), weir_deparser()) main;
