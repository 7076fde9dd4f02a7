/* The control plane's calls; see api.h. */
#include <stdlib.h>

#include "api.h"
#include "switch.h"

static struct entry *entry_of(struct vswitch *sw, uint32_t table, uint32_t handle) {
    struct table *t = &sw->tables[table];
    return handle == NO_ENTRY ? t->default_entry : table_entry(t, handle);
}

static void set_target(const struct table *table, struct entry *entry, const uint32_t what[3], const uint8_t *data) {
    entry->kind = (uint8_t)what[0];
    entry->action = (uint16_t)what[1];
    entry->target = what[2];
    if (data) memcpy(entry->data, data, table->spec->data_bytes);
}

static void set_idle_timeout(struct vswitch *sw, struct entry *entry, uint64_t idle_timeout_us) {
    entry->idle_timeout_us = idle_timeout_us;
    entry->last_hit_us = entry->reported_us = clock_now_us(sw);
}

uint32_t weir_insert(struct vswitch *sw, uint32_t table, const uint8_t *key, const uint8_t *mask, int32_t priority,
                     const uint32_t what[3], const uint8_t *data, uint64_t idle_timeout_us) {
    struct table *t = &sw->tables[table];
    switch_lock(sw);
    uint32_t handle = table_insert(t, key, mask, priority);
    if (handle != NO_ENTRY && handle != ENTRY_EXISTS) {
        set_target(t, table_entry(t, handle), what, data);
        set_idle_timeout(sw, table_entry(t, handle), idle_timeout_us);
    }
    switch_unlock(sw);
    return handle;
}

void weir_modify(struct vswitch *sw, uint32_t table, uint32_t handle, const uint32_t what[3], const uint8_t *data,
                 uint64_t idle_timeout_us) {
    switch_lock(sw);
    struct entry *entry = entry_of(sw, table, handle);
    entry->plain = false;
    set_target(&sw->tables[table], entry, what, data);
    set_idle_timeout(sw, entry, idle_timeout_us);
    switch_unlock(sw);
}

void weir_delete(struct vswitch *sw, uint32_t table, uint32_t handle) {
    switch_lock(sw);
    table_delete(&sw->tables[table], handle);
    switch_unlock(sw);
}

uint32_t weir_find(struct vswitch *sw, uint32_t table, const uint8_t *key, const uint8_t *mask, int32_t priority) {
    switch_lock(sw);
    uint32_t handle = table_find(&sw->tables[table], key, mask, priority);
    switch_unlock(sw);
    return handle;
}

uint32_t weir_in_use(struct vswitch *sw, uint32_t table, uint8_t *in_use, uint32_t count) {
    const struct table *t = &sw->tables[table];
    switch_lock(sw);
    uint32_t handles = t->high_water;
    for (uint32_t i = 0; i < count && i < handles; i++) in_use[i] = table_entry(t, i)->in_use;
    switch_unlock(sw);
    return handles;
}

int32_t weir_read_entry(struct vswitch *sw, uint32_t table, uint32_t handle, int32_t what[2], uint8_t *data) {
    const struct table *t = &sw->tables[table];
    switch_lock(sw);
    bool in_use = handle < t->high_water && table_entry(t, handle)->in_use;
    if (in_use) {
        const struct entry *entry = table_entry(t, handle);
        what[0] = entry->action;
        what[1] = entry->priority;
        memcpy(data, entry->data, t->spec->data_bytes + 2u * t->spec->key_bytes);
    }
    switch_unlock(sw);
    return in_use;
}

void weir_keep(struct vswitch *sw, uint32_t table, uint32_t handle) {
    switch_lock(sw);
    table_entry(&sw->tables[table], handle)->plain = false;
    switch_unlock(sw);
}

int32_t weir_set_members(struct vswitch *sw, uint32_t table, const uint8_t *keys, const uint8_t *masks, uint32_t count) {
    struct table *t = &sw->tables[table];
    uint32_t bytes = t->spec->key_bytes;
    int32_t result = 0;
    switch_lock(sw);
    table_clear(t);
    for (uint32_t i = 0; i < count && !result; i++)
        if (table_insert(t, keys + (size_t)i * bytes, masks ? masks + (size_t)i * bytes : NULL, 0) == NO_ENTRY) result = -1;
    if (result) table_clear(t);
    switch_unlock(sw);
    return result;
}

static uint64_t idle_us(const struct entry *entry, uint64_t now_us) {
    return now_us > entry->last_hit_us ? now_us - entry->last_hit_us : 0;
}

uint64_t weir_idle_us(struct vswitch *sw, uint32_t table, uint32_t handle) {
    switch_lock(sw);
    uint64_t idle = idle_us(entry_of(sw, table, handle), clock_now_us(sw));
    switch_unlock(sw);
    return idle;
}

static void sweep_table(struct vswitch *sw, uint32_t number, uint64_t now_us) {
    struct table *table = &sw->tables[number];
    for (uint32_t i = 0; i < table->high_water; i++) {
        struct entry *entry = table_entry(table, i);
        if (!entry->in_use || !entry->idle_timeout_us) continue;
        if (idle_us(entry, now_us) < entry->idle_timeout_us || now_us - entry->reported_us < entry->idle_timeout_us) continue;
        struct event event = {.kind = EVENT_IDLE, .id = number, .handle = i, .time_us = now_us};
        if (events_push(&sw->events, event, NULL)) entry->reported_us = now_us;
    }
}

void weir_sweep_idle(struct vswitch *sw) {
    for (uint32_t i = 0; i < sw->program->tables; i++) {
        if (!sw->program->table[i].has_idle_timeout) continue;
        switch_lock(sw);
        sweep_table(sw, i, clock_now_us(sw));
        switch_unlock(sw);
    }
}

void weir_entry_counter(struct vswitch *sw, uint32_t table, uint32_t handle, uint64_t value[2]) {
    switch_lock(sw);
    const struct entry *entry = entry_of(sw, table, handle);
    value[0] = entry->packets;
    value[1] = entry->bytes;
    switch_unlock(sw);
}

void weir_entry_counters(struct vswitch *sw, uint32_t table, uint64_t (*values)[2], uint32_t handles) {
    const struct table *t = &sw->tables[table];
    switch_lock(sw);
    for (uint32_t i = 0; i < handles && i < t->high_water; i++) {
        values[i][0] = table_entry(t, i)->packets;
        values[i][1] = table_entry(t, i)->bytes;
    }
    switch_unlock(sw);
}

void weir_set_entry_counter(struct vswitch *sw, uint32_t table, uint32_t handle, uint64_t packets, uint64_t bytes) {
    switch_lock(sw);
    struct entry *entry = entry_of(sw, table, handle);
    entry->packets = packets;
    entry->bytes = bytes;
    switch_unlock(sw);
}

int32_t weir_set_entry_meter(struct vswitch *sw, uint32_t table, uint32_t handle, const uint64_t rates[4]) {
    int32_t result = 0;
    switch_lock(sw);
    struct entry *entry = entry_of(sw, table, handle);
    if (entry->meter || (entry->meter = calloc(1, sizeof *entry->meter)))
        meter_configure(entry->meter, rates, clock_now_us(sw));
    else
        result = -1;
    switch_unlock(sw);
    return result;
}

/* Reads or writes the counts of a meter, which are 0 if it was never configured. */
static void exchange_counts(struct meter *meter, uint64_t values[2 * COLOURS], bool set) {
    if (!meter)
        memset(values, 0, sizeof meter->counts);
    else if (set)
        memcpy(meter->counts, values, sizeof meter->counts);
    else
        memcpy(values, meter->counts, sizeof meter->counts);
}

void weir_entry_meter_counts(struct vswitch *sw, uint32_t table, uint32_t handle, uint64_t values[6], uint32_t set) {
    switch_lock(sw);
    exchange_counts(entry_of(sw, table, handle)->meter, values, set);
    switch_unlock(sw);
}

void weir_meter_counts(struct vswitch *sw, uint32_t meter, uint32_t index, uint64_t values[6], uint32_t set) {
    switch_lock(sw);
    exchange_counts(&sw->meters[meter][index], values, set);
    switch_unlock(sw);
}

void weir_counters(struct vswitch *sw, uint32_t counter, uint32_t first, uint32_t count, uint64_t (*values)[2]) {
    switch_lock(sw);
    for (uint32_t i = 0; i < count; i++) {
        values[i][0] = sw->counters[counter][first + i].packets;
        values[i][1] = sw->counters[counter][first + i].bytes;
    }
    switch_unlock(sw);
}

void weir_set_counter(struct vswitch *sw, uint32_t counter, uint32_t index, uint64_t packets, uint64_t bytes) {
    switch_lock(sw);
    sw->counters[counter][index] = (struct counter){.packets = packets, .bytes = bytes};
    switch_unlock(sw);
}

void weir_set_meter(struct vswitch *sw, uint32_t meter, uint32_t index, const uint64_t rates[4]) {
    switch_lock(sw);
    meter_configure(&sw->meters[meter][index], rates, clock_now_us(sw));
    switch_unlock(sw);
}

static uint8_t *register_cell(struct vswitch *sw, uint32_t number, uint32_t index) {
    return sw->registers[number] + (size_t)index * sw->program->register_[number].stride_bytes;
}

void weir_register(struct vswitch *sw, uint32_t number, uint32_t index, uint8_t *value) {
    switch_lock(sw);
    memcpy(value, register_cell(sw, number, index), sw->program->register_[number].element_bytes);
    switch_unlock(sw);
}

void weir_set_register(struct vswitch *sw, uint32_t number, uint32_t index, const uint8_t *value) {
    switch_lock(sw);
    memcpy(register_cell(sw, number, index), value, sw->program->register_[number].element_bytes);
    switch_unlock(sw);
}

void weir_set_custom_crc(struct vswitch *sw, uint32_t number, const uint32_t parameters[6]) {
    if (number >= CUSTOM_CRCS) return;
    switch_lock(sw);
    sw->custom_crcs[number] = (struct custom_crc){
        .bits = (uint8_t)parameters[0],
        .polynomial = parameters[1],
        .initial = parameters[2],
        .final_xor = parameters[3],
        .data_reflected = parameters[4] != 0,
        .remainder_reflected = parameters[5] != 0,
        .is_set = true,
    };
    switch_unlock(sw);
}

int32_t weir_set_member(struct vswitch *sw, uint32_t profile, uint32_t handle, uint32_t action, const uint8_t *data) {
    switch_lock(sw);
    int32_t result = profile_set_member(&sw->profiles[profile], handle, (uint16_t)action, data);
    switch_unlock(sw);
    return result;
}

void weir_delete_member(struct vswitch *sw, uint32_t profile, uint32_t handle) {
    switch_lock(sw);
    profile_delete_member(&sw->profiles[profile], handle);
    switch_unlock(sw);
}

int32_t weir_set_group(struct vswitch *sw, uint32_t profile, uint32_t handle, const uint32_t *members,
                       const uint32_t *weights, const uint32_t *watches, uint32_t count) {
    switch_lock(sw);
    int32_t result = profile_set_group(&sw->profiles[profile], handle, members, weights, watches, count);
    switch_unlock(sw);
    return result;
}

int32_t weir_set_multicast_group(struct vswitch *sw, uint32_t group, const struct replica *replicas, uint32_t count) {
    switch_lock(sw);
    int32_t result = replicas_set(&sw->replication.groups[group], replicas, count, 0);
    switch_unlock(sw);
    return result;
}

int32_t weir_set_clone_session(struct vswitch *sw, uint32_t session, const struct replica *replicas, uint32_t count,
                               uint32_t packet_length_bytes) {
    switch_lock(sw);
    int32_t result = replicas_set(&sw->replication.sessions[session], replicas, count, packet_length_bytes);
    switch_unlock(sw);
    return result;
}

void weir_enable_digest(struct vswitch *sw, uint32_t digest, uint32_t enabled) {
    switch_lock(sw);
    sw->digest_enabled[digest] = enabled;
    switch_unlock(sw);
}

void weir_enable_log(struct vswitch *sw, uint32_t enabled) {
    switch_lock(sw);
    sw->log_enabled = enabled;
    switch_unlock(sw);
}

uint32_t weir_wait_events(struct vswitch *sw, uint64_t timeout_us, uint32_t samples, const uint8_t **events) {
    return events_wait(&sw->events, timeout_us, samples, events);
}

void weir_interrupt_events(struct vswitch *sw) { events_interrupt(&sw->events); }

uint64_t weir_now_us(const struct vswitch *sw) { return clock_now_us(sw); }

uint64_t weir_drops(const struct vswitch *sw, uint32_t cause) { return sw->drops[cause]; }
