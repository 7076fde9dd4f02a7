// Tenant check: a host can name only tenants that it belongs to. All may use the public namespace. Stores
// answer for every tenant, and a port to another switch was checked there.
//
// port_tenants: written by the controller, an entry for each tenant behind a port. Miss: dropped.
#ifndef WEIR_TENANT_CHECK_P4
#define WEIR_TENANT_CHECK_P4

control tenant_check(
    inout headers_t headers,
    inout metadata_t metadata,
    in standard_metadata_t standard_metadata)
{
    table port_tenants {
        key = {
            standard_metadata.ingress_port: exact @name("ingress_port");
            headers.kv.tenant: exact @name("tenant");
        }
        actions = {
            NoAction;
        }
        default_action = NoAction();
        size = MAX_TENANT_PORTS;
    }

    apply {
        if (headers.kv.tenant != TENANT_PUBLIC
            && metadata.role & (ROLE_TRUNK | ROLE_REPLY | ROLE_CONTROL) == 0
            && !port_tenants.apply().hit) {
            metadata.fate = fate_t.DROP;
            metadata.outcome = OUTCOME_FOREIGN_TENANT;
        }
    }
}

#endif
