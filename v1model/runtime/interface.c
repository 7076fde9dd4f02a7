/* A port's packet socket: frames in and out in bursts, VLAN tags put back where the kernel took them. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/socket.h>
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

static int configure(int fd, int index) {
    int on = 1;
    struct packet_mreq promiscuous = {.mr_ifindex = index, .mr_type = PACKET_MR_PROMISC};
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = index};
    if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on)) return errno;
    if (setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on)) return errno;
    if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous)) return errno;
    set_buffers(fd);
    return bind(fd, (struct sockaddr *)&address, sizeof address) ? errno : 0;
}

int interface_open(struct port *port, const char *interface) {
    if (strlen(interface) >= INTERFACE_NAME_BYTES) return ENAMETOOLONG;
    int index = (int)if_nametoindex(interface);
    if (!index) return ENODEV;
    port->socket = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (port->socket < 0) return errno;
    int error = configure(port->socket, index);
    if (error)
        interface_close(port);
    else
        memcpy(port->interface, interface, strlen(interface) + 1);
    return error;
}

void interface_close(struct port *port) {
    close(port->socket);
    port->socket = -1;
}

bool interface_is_gone(const struct port *port) { return if_nametoindex(port->interface) == 0; }

static const struct tpacket_auxdata *auxiliary(struct msghdr *message) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
        if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA)
            return (const struct tpacket_auxdata *)(const void *)CMSG_DATA(c);
    return NULL;
}

/* The tag goes between the addresses and the rest, which moves the addresses into the headroom. */
static uint32_t put_back_tag(struct job *job, uint32_t length, const struct tpacket_auxdata *aux) {
    uint16_t tpid = aux->tp_status & TP_STATUS_VLAN_TPID_VALID ? aux->tp_vlan_tpid : ETH_P_8021Q;
    if (length < MAC_ADDRESSES_BYTES) return length;
    memmove(job->data - VLAN_TAG_BYTES, job->data, MAC_ADDRESSES_BYTES);
    job->data -= VLAN_TAG_BYTES;
    store_be(job->data + MAC_ADDRESSES_BYTES, 2, tpid);
    store_be(job->data + MAC_ADDRESSES_BYTES + 2, 2, aux->tp_vlan_tci);
    return length + VLAN_TAG_BYTES;
}

/* Sets up the job for a received message; false: it does not fit the buffer. */
static bool accept_frame(struct port *port, struct job *job, struct mmsghdr *message) {
    const struct tpacket_auxdata *aux = auxiliary(&message->msg_hdr);
    uint32_t length = message->msg_len;
    if (message->msg_hdr.msg_flags & MSG_TRUNC) {
        port->statistics.oversize++;
        return false;
    }
    if (aux && aux->tp_status & TP_STATUS_VLAN_VALID) length = put_back_tag(job, length, aux);
    if (aux && aux->tp_status & TP_STATUS_CSUMNOTREADY) port->statistics.unfinished_checksums++;
    port->statistics.received_packets++;
    port->statistics.received_bytes += length;
    job->length = length;
    return true;
}

int interface_receive(struct port *port, struct job **jobs, uint32_t count, uint32_t frame_bytes) {
    struct mmsghdr messages[BURST];
    struct iovec parts[BURST];
    _Alignas(struct cmsghdr) uint8_t control[BURST][CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = (struct iovec){.iov_base = jobs[i]->data, .iov_len = frame_bytes};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1, .msg_control = control[i],
                                              .msg_controllen = sizeof control[i]};
    }
    int received = recvmmsg(port->socket, messages, count, MSG_DONTWAIT, NULL);
    if (received < 0) {
        if (errno == EAGAIN || errno == EINTR) return 0;
        port->error = errno;
        return -1;
    }
    int accepted = 0;
    for (int i = 0; i < received; i++) {
        if (!accept_frame(port, jobs[i], &messages[i])) continue;
        struct job *job = jobs[i];
        jobs[i] = jobs[accepted];
        jobs[accepted++] = job;
    }
    return accepted;
}

static bool is_fault(int error) {
    return error != ENOBUFS && error != EAGAIN && error != EMSGSIZE && error != EINVAL;
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
            port->statistics.transmit_drops++;
            if (is_fault(errno)) {
                port->error = errno;
                works = false;
            }
            i++;
            continue;
        }
        for (int k = 0; k < sent; k++) port->statistics.sent_bytes += port->queue[i + (uint32_t)k]->length;
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
