/* Two-rate three-colour meters (RFC 2698) as simple_switch runs them: tokens are counted in whole
 * units from one point of time, in microseconds. */
#ifndef WEIR_METER_H
#define WEIR_METER_H

#include <stdbool.h>
#include <stdint.h>

enum { GREEN, YELLOW, RED, COLOURS };

struct bucket {
    double rate; /* units per microsecond */
    uint64_t burst, tokens, last;
};

struct meter {
    bool configured;
    uint64_t start_us;
    struct bucket peak, committed;
    uint64_t counts[COLOURS][2]; /* packets, bytes */
};

/* Sets the rates, NULL for none: then every packet is green. The counts stay. */
void meter_configure(struct meter *meter, const uint64_t rates[4], uint64_t now_us); /* cir cburst pir pburst */
/* Returns the colour of a packet that takes `units`, and counts it. */
uint32_t meter_execute(struct meter *meter, uint64_t units, uint64_t bytes, uint64_t now_us);

#endif
