#include "plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet_port.h"
#include "ring.h"

enum { IPV4_OFFSET = 14, IPV4_BYTES = 20, IPV4_CHECKSUM_OFFSET = 10 };

static const char *plan_path;

static void *take(FILE *file, size_t bytes) {
    uint8_t *data = malloc(bytes ? bytes : 1);
    if (!data) fail("%s: no memory", plan_path);
    if (fread(data, 1, bytes, file) != bytes) fail("%s: ends too early", plan_path);
    return data;
}

static bool fits(uint32_t offset, uint32_t bytes) { return offset <= FRAME_BYTES && bytes <= FRAME_BYTES - offset; }

static void check_header(const struct plan_header *head) {
    bool sound = !memcmp(head->magic, "weirplan", sizeof head->magic) && head->ports && head->ports <= PLAN_PORTS &&
                 head->group && head->group <= head->ports && head->frames && head->frames % head->group == 0 &&
                 head->copies <= PLAN_COPIES && head->number_offset <= RING_HEADER_BYTES - 4 && fits(head->key_offset, 4) &&
                 fits(head->answer_bytes, 0) && (head->answer_port < head->ports || head->answer_port == NO_PORT) &&
                 (head->answer_port == NO_PORT || head->answer_bytes >= IPV4_OFFSET + IPV4_BYTES);
    if (!sound) fail("%s: not a plan", plan_path);
}

static void read_frame(struct plan *plan, struct plan_frame *frame, FILE *file) {
    uint16_t *head = take(file, 4);
    frame->port = head[0];
    frame->bytes = head[1];
    free(head);
    uint32_t last = plan->head.number_offset > plan->head.key_offset ? plan->head.number_offset : plan->head.key_offset;
    if (frame->port >= plan->head.ports || frame->bytes > FRAME_BYTES || frame->bytes < last + 4)
        fail("%s: a frame of %u bytes for port %u", plan_path, frame->bytes, frame->port);
    frame->data = take(file, frame->bytes);
}

struct plan plan_read(const char *path) {
    struct plan plan;
    FILE *file = fopen(path, "rb");
    plan_path = path;
    if (!file) fail("%s: %s", path, strerror(errno));
    struct plan_header *head = take(file, sizeof *head);
    check_header(head);
    plan.head = *head;
    struct plan_copy *copies = take(file, head->copies * sizeof *copies);
    memcpy(plan.copy, copies, head->copies * sizeof *copies);
    for (uint32_t i = 0; i < head->copies; i++)
        if (copies[i].from + copies[i].bytes > RING_HEADER_BYTES || (uint32_t)copies[i].to + copies[i].bytes > head->answer_bytes)
            fail("%s: copy %u leaves the frame", path, i);
    plan.answer = take(file, head->answer_bytes);
    plan.frame = calloc(head->frames, sizeof *plan.frame);
    if (!plan.frame) fail("%s: no memory", path);
    for (uint32_t i = 0; i < head->frames; i++) read_frame(&plan, &plan.frame[i], file);
    free(copies);
    free(head);
    fclose(file);
    return plan;
}

static void set_ipv4_checksum(uint8_t *ipv4) {
    uint32_t sum = 0;
    ipv4[IPV4_CHECKSUM_OFFSET] = ipv4[IPV4_CHECKSUM_OFFSET + 1] = 0;
    for (unsigned i = 0; i < IPV4_BYTES; i += 2) sum += (uint32_t)ipv4[i] << 8 | ipv4[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~(sum + (sum >> 16)) & 0xffff;
    ipv4[IPV4_CHECKSUM_OFFSET] = (uint8_t)(sum >> 8);
    ipv4[IPV4_CHECKSUM_OFFSET + 1] = (uint8_t)sum;
}

void plan_answer(const struct plan *plan, const uint8_t *request, uint8_t *answer) {
    memcpy(answer, plan->answer, plan->head.answer_bytes);
    for (uint32_t i = 0; i < plan->head.copies; i++)
        memcpy(answer + plan->copy[i].to, request + plan->copy[i].from, plan->copy[i].bytes);
    set_ipv4_checksum(answer + IPV4_OFFSET);
}
