/* A port's packet socket: frames in and out in bursts, VLAN tags put back where the kernel took them. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bits.h"
#include "port.h"

enum { SOCKET_BUFFER_BYTES = 8 << 20, VLAN_TAG_BYTES = 4, MAC_ADDRESSES_BYTES = 12 };

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

static void set_buffers(int fd) {
    int bytes = SOCKET_BUFFER_BYTES;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes))
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes))
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static bool ask_interface(int fd, const char *interface, unsigned long what, struct ifreq *answer) {
    *answer = (struct ifreq){.ifr_flags = 0};
    memcpy(answer->ifr_name, interface, strlen(interface) + 1);
    return ioctl(fd, what, answer) == 0;
}

static int configure(struct port *port, const char *interface, uint32_t ring_bytes) {
    int fd = port->socket, on = 1, index = (int)port->index;
    struct packet_mreq promiscuous = {.mr_ifindex = index, .mr_type = PACKET_MR_PROMISC};
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = index};
    if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on)) return errno;
    if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous)) return errno;
    set_buffers(fd);
    struct ifreq answer;
    if (!ask_interface(fd, interface, SIOCGIFMTU, &answer)) return errno;
    int error = ring_open(&port->ring, fd, (uint32_t)answer.ifr_mtu, ring_bytes);
    if (error) return error;
    return bind(fd, (struct sockaddr *)&address, sizeof address) ? errno : 0;
}

/* Only one switch may use an interface, because two would both forward every frame. The claim is a socket
 * in the abstract namespace, which network namespaces don't share, and ends with the process. */
static int claim(struct port *port, const char *interface) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "weir-port-%s", interface);
    port->claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (port->claim < 0) return errno;
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    return bind(port->claim, (struct sockaddr *)&name, bytes) ? errno : 0;
}

int interface_open(struct port *port, const char *interface, uint32_t ring_bytes) {
    if (strlen(interface) >= INTERFACE_NAME_BYTES) return ENAMETOOLONG;
    port->index = if_nametoindex(interface);
    if (!port->index) return ENODEV;
    port->socket = port->claim = -1;
    int error = claim(port, interface);
    if (!error && (port->socket = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) < 0) error = errno;
    if (!error) error = configure(port, interface, ring_bytes);
    if (error)
        interface_close(port);
    else
        memcpy(port->interface, interface, strlen(interface) + 1);
    return error;
}

void interface_close(struct port *port) {
    ring_close(&port->ring);
    if (port->socket >= 0) close(port->socket);
    if (port->claim >= 0) close(port->claim);
    port->socket = port->claim = -1;
}

bool interface_is_gone(const struct port *port) {
    char name[IF_NAMESIZE];
    return !if_indextoname(port->index, name);
}

bool interface_link_is_up(const struct port *port) {
    struct ifreq answer;
    if (port->socket < 0 || !ask_interface(port->socket, port->interface, SIOCGIFFLAGS, &answer)) return false;
    return (answer.ifr_flags & IFF_UP) && (answer.ifr_flags & IFF_RUNNING);
}

/* Puts the VLAN tag between the addresses and the rest, by moving the addresses into the headroom. */
static void put_back_tag(struct job *job, const struct ring_frame *frame) {
    if (job->length < MAC_ADDRESSES_BYTES) return;
    memmove(job->data - VLAN_TAG_BYTES, job->data, MAC_ADDRESSES_BYTES);
    job->data -= VLAN_TAG_BYTES;
    store_be(job->data + MAC_ADDRESSES_BYTES, 2, frame->tag_protocol);
    store_be(job->data + MAC_ADDRESSES_BYTES + 2, 2, frame->tag);
    job->length += VLAN_TAG_BYTES;
}

/* Reads a long frame from the socket, whose queue has these frames in the ring's order. An error that is
 * reported in between must not replace a frame. */
static ssize_t receive_long(struct port *port, struct job *job, uint32_t frame_bytes) {
    ssize_t length = recv(port->socket, job->data, frame_bytes, MSG_DONTWAIT | MSG_TRUNC);
    if (length >= 0 || errno == EAGAIN) return length;
    port->error = errno;
    return recv(port->socket, job->data, frame_bytes, MSG_DONTWAIT | MSG_TRUNC);
}

/* Copies a frame out of the ring or from the socket; returns false if it does not fit. */
static bool copy_frame(struct port *port, struct job *job, const struct ring_frame *frame, uint32_t frame_bytes) {
    if (frame->copied) {
        ssize_t length = receive_long(port, job, frame_bytes);
        if (length < 0 || length > (ssize_t)frame_bytes) return false;
        job->length = (uint32_t)length;
        return true;
    }
    if (frame->truncated || frame->length > frame_bytes) return false;
    memcpy(job->data, frame->data, frame->length);
    job->length = frame->length;
    return true;
}

uint32_t interface_receive(struct port *port, struct job **jobs, uint32_t count, uint32_t frame_bytes) {
    struct ring_frame frame;
    uint32_t accepted = 0;
    while (accepted < count && ring_peek(&port->ring, &frame)) {
        struct job *job = jobs[accepted];
        if (copy_frame(port, job, &frame, frame_bytes)) {
            if (frame.has_tag) put_back_tag(job, &frame);
            port->statistics.received_packets++;
            port->statistics.received_bytes += job->length;
            port->statistics.unfinished_checksums += frame.unfinished_checksum;
            accepted++;
        } else {
            port->statistics.oversize++;
        }
        ring_release(&port->ring);
    }
    return accepted;
}

bool interface_take_error(struct port *port) {
    int error = 0;
    socklen_t length = sizeof error;
    if (port->socket < 0 || getsockopt(port->socket, SOL_SOCKET, SO_ERROR, &error, &length) || !error) return false;
    port->error = error;
    return true;
}

static bool is_fault(int error) {
    return error != ENOBUFS && error != EAGAIN && error != EMSGSIZE && error != EINVAL;
}

static void count_refused(struct port *port, struct job *job, int error) {
    job->send_error = error;
    if (error == EMSGSIZE)
        port->statistics.beyond_mtu++;
    else
        port->statistics.transmit_drops++;
}

bool interface_send(struct port *port) {
    bool works = true;
    struct mmsghdr messages[BURST];
    struct iovec parts[BURST];
    for (uint32_t i = 0; i < port->queued; i++) {
        parts[i] = (struct iovec){.iov_base = port->queue[i]->data, .iov_len = port->queue[i]->length};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    }
    for (uint32_t i = 0; i < port->queued;) {
        int sent = sendmmsg(port->socket, messages + i, port->queued - i, MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) { /* the first of them was refused; the next may pass */
            int error = sent < 0 ? errno : EAGAIN;
            count_refused(port, port->queue[i], error);
            if (is_fault(error)) {
                port->error = error;
                works = false;
            }
            i++;
            continue;
        }
        for (int k = 0; k < sent; k++) {
            port->queue[i + (uint32_t)k]->send_error = 0;
            port->statistics.sent_bytes += port->queue[i + (uint32_t)k]->length;
        }
        port->statistics.sent_packets += (uint32_t)sent;
        i += (uint32_t)sent;
    }
    return works;
}

void interface_count_kernel_drops(struct port *port) {
    struct tpacket_stats statistics;
    socklen_t length = sizeof statistics;
    if (port->socket >= 0 && !getsockopt(port->socket, SOL_PACKET, PACKET_STATISTICS, &statistics, &length))
        port->statistics.kernel_drops += statistics.tp_drops;
}
