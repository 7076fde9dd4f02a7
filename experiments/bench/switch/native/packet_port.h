/* Raw frames in batches on a network interface (AF_PACKET). Errors end the process with a message. */
#ifndef PACKET_PORT_H
#define PACKET_PORT_H

#include <stdint.h>
#include <sys/socket.h>

enum { BATCH = 32, FRAME_BYTES = 10240 };

struct batch {
    unsigned count;
    struct mmsghdr message[BATCH];
    struct iovec piece[BATCH];
    uint8_t frame[BATCH][FRAME_BYTES];
};

void batch_init(struct batch *batch);

/* A socket that receives what comes in at `interface`, and nothing that goes out of it. Frames that wait
 * for port_receive take up at most `receive_buffer_bytes`, the kernel's own bytes included. */
int port_open(const char *interface, int receive_buffer_bytes);

/* Frames that wait, at most BATCH, without waiting for any; of each the first `most_bytes` are copied.
 * message[i].msg_len is a frame's whole length. */
unsigned port_receive(int port, struct batch *batch, unsigned most_bytes);

/* Sends the batch's first `count` frames, of piece[i].iov_len bytes, and empties it; how many went. */
unsigned port_send(int port, struct batch *batch);

/* Frames that came for this socket and found its buffer full, since the last call. */
unsigned port_drops(int port);

__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);
uint32_t parse_number(const char *text, const char *what);

#endif
