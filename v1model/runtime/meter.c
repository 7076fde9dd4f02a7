#include "meter.h"

#include <stddef.h>

static void bucket_configure(struct bucket *bucket, uint64_t rate, uint64_t burst) {
    *bucket = (struct bucket){.rate = (double)rate / 1e6, .burst = burst, .tokens = burst};
}

void meter_configure(struct meter *meter, const uint64_t rates[4], uint64_t now_us) {
    meter->configured = rates != NULL;
    if (!rates) return;
    meter->start_us = now_us;
    bucket_configure(&meter->committed, rates[0], rates[1]);
    bucket_configure(&meter->peak, rates[2], rates[3]);
}

/* Takes `units` out of the bucket, if it holds so many; returns whether it did. */
static bool bucket_take(struct bucket *bucket, uint64_t units, uint64_t elapsed_us) {
    double total = (double)elapsed_us * bucket->rate;
    uint64_t since_start = total < 1.8e19 ? (uint64_t)total : UINT64_MAX;
    uint64_t fresh = since_start > bucket->last ? since_start - bucket->last : 0;
    bucket->last = since_start;
    bucket->tokens = fresh > bucket->burst - bucket->tokens ? bucket->burst : bucket->tokens + fresh;
    if (bucket->tokens < units) return false;
    bucket->tokens -= units;
    return true;
}

static uint32_t colour(struct meter *meter, uint64_t units, uint64_t now_us) {
    uint64_t elapsed_us = now_us > meter->start_us ? now_us - meter->start_us : 0;
    if (!meter->configured) return GREEN;
    if (!bucket_take(&meter->peak, units, elapsed_us)) return RED;
    if (!bucket_take(&meter->committed, units, elapsed_us)) return YELLOW;
    return GREEN;
}

uint32_t meter_execute(struct meter *meter, uint64_t units, uint64_t bytes, uint64_t now_us) {
    uint32_t result = colour(meter, units, now_us);
    meter->counts[result][0]++;
    meter->counts[result][1] += bytes;
    return result;
}
