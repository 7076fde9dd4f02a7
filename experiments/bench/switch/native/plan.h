/* What to send and what to expect, as experiments/bench/switch/plan.py writes it (little-endian). */
#ifndef PLAN_H
#define PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum { PLAN_PORTS = 16, PLAN_COPIES = 16, NO_PORT = UINT32_MAX };

struct plan_header {
    char magic[8];
    uint32_t ports;
    uint32_t group;           /* this many frames in a row carry the same number, each out of its own port */
    uint32_t number_offset;   /* of the 4-byte number in requests and replies */
    uint32_t key_offset;      /* a second place for the number in requests, 0 for none: a new key each time */
    uint32_t reply_bytes;     /* a reply's length */
    uint32_t answer_port;     /* a storage node is emulated here, NO_PORT for none */
    uint32_t answer_bytes;    /* length of its answers */
    uint32_t copies;          /* fields that an answer takes over from its request */
    uint32_t frames;
};

struct plan_copy {
    uint16_t from, to, bytes, unused;
};

struct plan_frame {
    uint16_t port, bytes;
    const uint8_t *data;
};

struct plan {
    struct plan_header head;
    struct plan_copy copy[PLAN_COPIES];
    const uint8_t *answer;
    struct plan_frame *frame;
};

/* Ends the process with a message if the file is not a plan. */
struct plan plan_read(const char *path);

/* The answer to `request`, with its IPv4 checksum. */
void plan_answer(const struct plan *plan, const uint8_t *request, uint8_t *answer);

#endif
