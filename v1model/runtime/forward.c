/* The forwarding thread: runs bursts of frames from all ready interfaces through the pipeline under the
 * lock, and sends them without it. Between two bursts the control plane has its turn. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "api.h"
#include "trace.h"

enum { READY_PORTS = 64, SERVE_ROUNDS = 16, PRIORITY = -10 };

struct burst {
    struct job *jobs[BURST]; /* with empty buffers, or received */
    uint16_t ports[BURST];
    uint32_t taken, received, total;
};

void forward_wake(struct vswitch *sw) {
    uint64_t one = 1;
    if (write(sw->ports.wake, &one, sizeof one) < 0) return; /* the counter is full: awake enough */
}

static int watch(struct vswitch *sw, int fd, uint32_t number) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};
    return epoll_ctl(sw->ports.epoll, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
}

static int open_epoll(struct vswitch *sw) {
    if (sw->ports.epoll >= 0) return 0;
    sw->ports.epoll = epoll_create1(EPOLL_CLOEXEC);
    sw->ports.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sw->ports.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (sw->ports.epoll < 0 || sw->ports.wake < 0 || sw->ports.timer < 0) return errno;
    int error = watch(sw, sw->ports.wake, PORTS);
    return error ? error : watch(sw, sw->ports.timer, PORTS);
}

static uint32_t ring_bytes(const struct vswitch *sw) {
    uint32_t attached = 0;
    for (uint32_t i = 0; i < PORTS; i++) attached += sw->ports.port[i] != NULL;
    return attached < RING_LARGE_PORTS ? RING_BYTES : 0;
}

int32_t weir_attach(struct vswitch *sw, uint32_t number, const char *interface) {
    if (sw->ports.running || number >= PORTS || sw->ports.port[number]) return EBUSY;
    struct port *port = calloc(1, sizeof *port);
    if (!port) return ENOMEM;
    int error = open_epoll(sw);
    if (!error) error = interface_open(port, interface, ring_bytes(sw));
    if (!error && (error = watch(sw, port->socket, number))) interface_close(port);
    if (error)
        free(port);
    else
        sw->ports.port[number] = port;
    return error;
}

int32_t weir_detach(struct vswitch *sw, uint32_t number) {
    if (sw->ports.running || number >= PORTS || !sw->ports.port[number]) return EBUSY;
    ports_flush(sw);
    if (sw->ports.port[number]->socket >= 0) interface_close(sw->ports.port[number]);
    free(sw->ports.port[number]);
    sw->ports.port[number] = NULL;
    return 0;
}

void ports_close(struct vswitch *sw) {
    for (uint32_t i = 0; i < PORTS; i++)
        if (sw->ports.port[i]) weir_detach(sw, i);
    if (sw->ports.epoll >= 0) close(sw->ports.epoll);
    if (sw->ports.wake >= 0) close(sw->ports.wake);
    if (sw->ports.timer >= 0) close(sw->ports.timer);
    free(sw->ports.outbox);
}

int32_t weir_port_statistics(struct vswitch *sw, uint32_t number, uint64_t values[10]) {
    struct port *port = number < PORTS ? sw->ports.port[number] : NULL;
    if (!port) return ENODEV;
    interface_count_kernel_drops(port);
    memcpy(values, &port->statistics, sizeof port->statistics);
    values[sizeof port->statistics / sizeof *values] = (uint64_t)port->error;
    return 0;
}

static void take_buffers(struct vswitch *sw, struct burst *burst) {
    struct job *job;
    while (burst->taken < BURST && (job = job_take(&sw->pool))) burst->jobs[burst->taken++] = job;
}

static void receive(struct vswitch *sw, struct burst *burst, uint32_t number) {
    struct port *port = sw->ports.port[number];
    if (!port || port->down) return;
    struct job **free_jobs = burst->jobs + burst->received;
    uint64_t before = port->statistics.oversize;
    uint32_t count = interface_receive(port, free_jobs, burst->taken - burst->received, sw->max_frame_bytes);
    if (port->statistics.oversize != before) {
        sw->drops[DROPPED_OVERSIZE] += port->statistics.oversize - before;
        trace_not_taken(sw, port->statistics.oversize - before, number);
    }
    for (uint32_t i = 0; i < count; i++) burst->ports[burst->received++] = (uint16_t)number;
    burst->total += count;
}

/* Lets the thread wake when the next packet leaves its queue. */
static void set_timer(struct vswitch *sw) {
    uint64_t next_ns = sw->queues->next_ns, now_ns = clock_now_us(sw) * 1000;
    if (next_ns == UINT64_MAX) return;
    uint64_t left_ns = next_ns > now_ns ? next_ns - now_ns : 1;
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)(left_ns / 1000000000u), .tv_nsec = (long)(left_ns % 1000000000u)}};
    timerfd_settime(sw->ports.timer, 0, &when, NULL);
}

/* Runs all received packets through the pipeline once; those that are resubmitted or recirculated wait
 * until after the next burst. */
static void run_burst(struct vswitch *sw, struct burst *burst) {
    struct job *job;
    switch_lock(sw);
    ports_reclaim(sw);
    sw->now_us = clock_now_us(sw);
    for (uint32_t waiting = sw->again.count; waiting-- > 0;) sw->program->run(sw, job_pop(&sw->again));
    while ((job = job_pop(&sw->ports.injected))) sw->program->run(sw, job);
    for (uint32_t i = 0; i < burst->received; i++) {
        job = burst->jobs[i];
        job_begin(job, job->length, burst->ports[i]);
        sw->program->run(sw, job);
    }
    for (uint32_t i = burst->received; i < burst->taken; i++) burst->jobs[i - burst->received] = burst->jobs[i];
    burst->taken -= burst->received;
    burst->received = 0;
    take_buffers(sw, burst);
    if (sw->queues && sw->queues->waiting) {
        queues_serve(sw, sw->now_us);
        set_timer(sw);
    }
    switch_unlock(sw);
    ports_send(sw);
}

static void drain_wake(struct vswitch *sw) {
    uint64_t count;
    if (read(sw->ports.timer, &count, sizeof count) < 0 && errno != EAGAIN) return;
    if (read(sw->ports.wake, &count, sizeof count) < 0) return; /* somebody was faster, or it was the timer */
}

/* Polls the ready ports while they have frames, which costs no system call. After some rounds it checks
 * the other ports, too. */
static void serve(struct vswitch *sw, struct burst *burst, const struct epoll_event *ready, int count) {
    for (int round = 0; round < SERVE_ROUNDS; round++) {
        uint32_t before = burst->total;
        for (int i = 0; i < count; i++) {
            if (ready[i].data.u32 == PORTS) continue;
            receive(sw, burst, ready[i].data.u32);
            if (burst->received == burst->taken) run_burst(sw, burst);
        }
        if (burst->total == before) return;
        run_burst(sw, burst);
    }
}

/* Handles events that are no frames. Returns whether there is something to run without frames. */
static bool heed(struct vswitch *sw, const struct epoll_event *ready, int count) {
    bool has_work = sw->again.count != 0;
    for (int i = 0; i < count; i++) {
        uint32_t number = ready[i].data.u32;
        if (number == PORTS) {
            drain_wake(sw);
            has_work = true;
        } else if (ready[i].events & EPOLLERR && interface_take_error(sw->ports.port[number])) {
            port_failed(sw, number);
        }
    }
    return has_work;
}

static int forward(struct vswitch *sw, struct burst *burst) {
    struct epoll_event ready[READY_PORTS];
    while (__atomic_load_n(&sw->ports.keep_running, __ATOMIC_ACQUIRE)) {
        int count = epoll_wait(sw->ports.epoll, ready, READY_PORTS, sw->again.count ? 0 : ports_patience_ms(sw));
        if (count < 0 && errno != EINTR) return errno;
        ports_look_again(sw);
        if (heed(sw, ready, count)) run_burst(sw, burst);
        serve(sw, burst, ready, count);
    }
    return 0;
}

int32_t weir_forward(struct vswitch *sw) {
    struct burst burst = {.taken = 0};
    int error = open_epoll(sw);
    if (error) return error;
    setpriority(PRIO_PROCESS, 0, PRIORITY); /* this thread; without the right to it, it works as well */
    switch_lock(sw);
    sw->ports.running = true;
    take_buffers(sw, &burst);
    switch_unlock(sw);
    error = forward(sw, &burst);
    switch_lock(sw);
    ports_flush(sw);
    for (uint32_t i = 0; i < burst.taken; i++) job_release(&sw->pool, burst.jobs[i]);
    sw->ports.running = false;
    switch_unlock(sw);
    return error;
}

void weir_keep_running(struct vswitch *sw, uint32_t running) {
    __atomic_store_n(&sw->ports.keep_running, running != 0, __ATOMIC_RELEASE);
    if (!running && sw->ports.wake >= 0) forward_wake(sw);
}
