/* Functions that Python calls (v1model/binding.py declares the same). The caller checks indices and
 * handles: they come from the program's own description. Every call is atomic against packets. */
#ifndef WEIR_API_H
#define WEIR_API_H

#include <stdint.h>

#include "port.h"
#include "replication.h"
#include "write.h"

#define WEIR_API __attribute__((visibility("default")))

struct vswitch;

WEIR_API struct vswitch *weir_create(uint32_t cpu_port, uint32_t max_frame_bytes); /* NULL: no memory */
WEIR_API void weir_destroy(struct vswitch *sw);
WEIR_API void weir_reset(struct vswitch *sw);
/* The parameters of one call's crc16_custom or crc32_custom: bits (16 or 32), polynomial, initial remainder, final
 * xor, and whether data and remainder are reflected. */
WEIR_API void weir_set_custom_crc(struct vswitch *sw, uint32_t number, const uint32_t parameters[6]);
/* Continues with this build of the program; another build of it has created the switch. */
WEIR_API void weir_go_over(struct vswitch *sw);

/* Packets. `now_us` UINT64_MAX: the clock's time. Returns -1 if the packet was dropped before it got in. */
WEIR_API int32_t weir_inject(struct vswitch *sw, uint32_t port, const uint8_t *frame, uint32_t length, uint64_t now_us);
WEIR_API uint32_t weir_take_outputs(struct vswitch *sw, const uint8_t **records); /* valid until the next packet */
WEIR_API uint64_t weir_now_us(const struct vswitch *sw);
/* Stops the switch's clock at this time, until the next call; UINT64_MAX: the machine's clock again. */
WEIR_API void weir_set_clock(struct vswitch *sw, uint64_t now_us);
WEIR_API uint64_t weir_drops(const struct vswitch *sw, uint32_t cause);

/* Tables. `what`: kind (enum target_kind), action, member or group handle. As a result, handle UINT32_MAX
 * means full (insert) or none (find), UINT32_MAX - 1 that the entry exists; as an argument, UINT32_MAX is
 * the default entry. */
WEIR_API uint32_t weir_insert(struct vswitch *sw, uint32_t table, const uint8_t *key, const uint8_t *mask, int32_t priority,
                              const uint32_t what[3], const uint8_t *data, uint64_t idle_timeout_us);
WEIR_API void weir_modify(struct vswitch *sw, uint32_t table, uint32_t handle, const uint32_t what[3], const uint8_t *data,
                          uint64_t idle_timeout_us);
WEIR_API void weir_delete(struct vswitch *sw, uint32_t table, uint32_t handle);
/* Returns the entry with this key, mask (NULL for MATCH_EXACT) and priority. */
WEIR_API uint32_t weir_find(struct vswitch *sw, uint32_t table, const uint8_t *key, const uint8_t *mask, int32_t priority);
/* Writes one byte for each handle, up to `count`: whether it is in use. Returns how many handles there
 * have ever been. */
WEIR_API uint32_t weir_in_use(struct vswitch *sw, uint32_t table, uint8_t *in_use, uint32_t count);
/* Reads an entry with an action of its own: action and priority; arguments, key and mask, one behind the
 * other. Returns 0 if there is no such entry. */
WEIR_API int32_t weir_read_entry(struct vswitch *sw, uint32_t table, uint32_t handle, int32_t what[2], uint8_t *data);
/* Marks an entry of which the caller stores something: from now on weir_write leaves it to the caller. */
WEIR_API void weir_keep(struct vswitch *sw, uint32_t table, uint32_t handle);
/* Does updates of a serialized p4.v1.WriteRequest from the byte `cursor` on, at most `most`, until one
 * that is for the caller (write.h). Returns how many were done. `cursor` is then where to continue, after
 * an update by weir_skip_update. */
WEIR_API uint32_t weir_write(struct vswitch *sw, const struct wire_schema *schema, const uint8_t *request, uint32_t length,
                             uint32_t *cursor, uint32_t most);
WEIR_API uint32_t weir_skip_update(const uint8_t *request, uint32_t length, uint32_t cursor);
/* Replaces all entries of a table without actions (a value set): keys and masks one behind the other,
 * masks NULL for MATCH_EXACT. Returns -1 without space or memory; the set is then empty. */
WEIR_API int32_t weir_set_members(struct vswitch *sw, uint32_t table, const uint8_t *keys, const uint8_t *masks, uint32_t count);
WEIR_API uint64_t weir_idle_us(struct vswitch *sw, uint32_t table, uint32_t handle);
WEIR_API void weir_sweep_idle(struct vswitch *sw); /* queues an event for each entry that ran out */
WEIR_API void weir_entry_counter(struct vswitch *sw, uint32_t table, uint32_t handle, uint64_t value[2]);
WEIR_API void weir_entry_counters(struct vswitch *sw, uint32_t table, uint64_t (*values)[2], uint32_t handles);
WEIR_API void weir_set_entry_counter(struct vswitch *sw, uint32_t table, uint32_t handle, uint64_t packets, uint64_t bytes);
WEIR_API int32_t weir_set_entry_meter(struct vswitch *sw, uint32_t table, uint32_t handle, const uint64_t rates[4]);

/* Read or (`set`) write packets and bytes of each colour. */
WEIR_API void weir_entry_meter_counts(struct vswitch *sw, uint32_t table, uint32_t handle, uint64_t values[6], uint32_t set);
WEIR_API void weir_meter_counts(struct vswitch *sw, uint32_t meter, uint32_t index, uint64_t values[6], uint32_t set);

/* Arrays. Rates NULL: not configured. */
WEIR_API void weir_counters(struct vswitch *sw, uint32_t counter, uint32_t first, uint32_t count, uint64_t (*values)[2]);
WEIR_API void weir_set_counter(struct vswitch *sw, uint32_t counter, uint32_t index, uint64_t packets, uint64_t bytes);
WEIR_API void weir_set_meter(struct vswitch *sw, uint32_t meter, uint32_t index, const uint64_t rates[4]);
WEIR_API void weir_register(struct vswitch *sw, uint32_t number, uint32_t index, uint8_t *value);
WEIR_API void weir_set_register(struct vswitch *sw, uint32_t number, uint32_t index, const uint8_t *value);

/* The traffic manager. weir_enable_queues: priorities (1 to 8) of each port. After it: rates of a port;
 * limits of a queue, as in struct queue_limits, 0 for none; of a queue its packets and bytes, and packets
 * sent, dropped and marked. */
WEIR_API int32_t weir_enable_queues(struct vswitch *sw, uint32_t per_port);
WEIR_API void weir_set_port_rate(struct vswitch *sw, uint32_t port, uint64_t packets_per_s, uint64_t bits_per_s);
WEIR_API void weir_set_queue(struct vswitch *sw, uint32_t port, uint32_t queue, const uint64_t values[7]);
WEIR_API void weir_queue(struct vswitch *sw, uint32_t port, uint32_t queue, uint64_t values[5]);
/* In the library form: sends the packets whose time has come by `until_us`; `and_wait`: that time is now. */
WEIR_API void weir_serve_queues(struct vswitch *sw, uint64_t until_us, uint32_t and_wait);

/* Action profiles, replication, digests. Results are 0, or -1 without memory. */
WEIR_API int32_t weir_set_member(struct vswitch *sw, uint32_t profile, uint32_t handle, uint32_t action, const uint8_t *data);
WEIR_API void weir_delete_member(struct vswitch *sw, uint32_t profile, uint32_t handle);
WEIR_API int32_t weir_set_group(struct vswitch *sw, uint32_t profile, uint32_t handle, const uint32_t *members,
                                const uint32_t *weights, const uint32_t *watches, uint32_t count);
WEIR_API void weir_look_at_links(struct vswitch *sw); /* for members that watch a port */
WEIR_API int32_t weir_set_multicast_group(struct vswitch *sw, uint32_t group, const struct replica *replicas, uint32_t count);
WEIR_API int32_t weir_set_clone_session(struct vswitch *sw, uint32_t session, const struct replica *replicas, uint32_t count,
                                        uint32_t packet_length_bytes);
WEIR_API void weir_enable_digest(struct vswitch *sw, uint32_t digest, uint32_t enabled);
/* Traces the packets that come into `port` (UINT32_MAX: any) and begin with `value` under `mask`. */
WEIR_API void weir_trace(struct vswitch *sw, uint32_t enabled, uint32_t port, const uint8_t *value, const uint8_t *mask, uint32_t length);
WEIR_API void weir_enable_log(struct vswitch *sw, uint32_t enabled);

/* Events: struct event and its data, one behind the other; valid until the next call. */
WEIR_API uint32_t weir_wait_events(struct vswitch *sw, uint64_t timeout_us, uint32_t samples, const uint8_t **events);
WEIR_API void weir_interrupt_events(struct vswitch *sw);

/* Ports. Results are 0, or an errno. */
WEIR_API int32_t weir_attach(struct vswitch *sw, uint32_t port, const char *interface);
WEIR_API int32_t weir_detach(struct vswitch *sw, uint32_t port);
WEIR_API void weir_keep_running(struct vswitch *sw, uint32_t running); /* before weir_forward: 1; to end it: 0 */
WEIR_API int32_t weir_forward(struct vswitch *sw);
WEIR_API int32_t weir_port_statistics(struct vswitch *sw, uint32_t port, uint64_t values[10]);

#endif
