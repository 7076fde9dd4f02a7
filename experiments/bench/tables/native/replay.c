/* Packets into a switch of the library form, one after the other, without Python between them. */
#include <stdint.h>
#include <time.h>

typedef int32_t inject_t(void *sw, uint32_t port, const uint8_t *frame, uint32_t length, uint64_t now_us);
typedef uint32_t take_outputs_t(void *sw, const uint8_t **records);

enum { TAKE_EVERY = 256 };

/* `rounds` times all `count` frames of `length` bytes; the nanoseconds that it took, and in `taken` the
 * bytes of all outputs. */
uint64_t replay(inject_t *inject, take_outputs_t *take_outputs, void *sw, const uint8_t *frames, uint32_t length,
                uint32_t count, uint32_t rounds, uint64_t *taken) {
    struct timespec begin, end;
    const uint8_t *records;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (uint32_t round = 0; round < rounds; round++)
        for (uint32_t i = 0; i < count; i++) {
            inject(sw, 1, frames + (uint64_t)i * length, length, round);
            if (i % TAKE_EVERY == TAKE_EVERY - 1) *taken += take_outputs(sw, &records);
        }
    *taken += take_outputs(sw, &records);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (uint64_t)(end.tv_sec - begin.tv_sec) * 1000000000u + (uint64_t)end.tv_nsec - (uint64_t)begin.tv_nsec;
}
