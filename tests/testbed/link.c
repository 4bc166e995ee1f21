/* Wires of the test bed: serialisation, a drop-tail queue, delay and seeded loss.
 *
 *     link < WIRES
 *
 * Linux has netem for this, but not every kernel brings it. Each line of WIRES is one direction:
 *
 *     in_interface out_interface bytes_per_s delay_s queue_packets loss seed
 *
 * A frame that comes in waits until those before it have left, takes size / rate to leave, and comes
 * out delay_s later. Where queue_packets already wait, it is dropped; it is lost after it has left
 * with probability `loss`, by a generator of this direction alone: the n-th frame is lost or not
 * whatever the time is. At SIGUSR2 the next frame of at least LARGE_BYTES of the first direction is
 * lost, whatever `loss` says. Says "ready", then at SIGUSR1 and at its end one line for each
 * direction: frames and bytes delivered, frames dropped, frames lost.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MOST_WIRES 512
#define FRAME_BYTES 2048
#define BATCH 64
/* Acknowledgements are smaller. */
#define LARGE_BYTES 1000

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

struct frame {
    int64_t leaves_ns; /* its last bit is on the wire */
    int64_t comes_out_ns;
    int lost;
    int n_bytes;
    unsigned char bytes[FRAME_BYTES];
};

struct wire {
    char in_name[IFNAMSIZ], out_name[IFNAMSIZ];
    int in_socket, out_socket;
    double ns_per_byte, loss;
    int64_t delay_ns, free_ns;
    unsigned queue_packets;
    uint64_t random;
    struct frame *ring; /* frames in the order in which they came */
    size_t room, first, count, waiting; /* of them the last `waiting` have not begun to leave */
    uint64_t frames, bytes, dropped, lost;
};

static struct wire wires[MOST_WIRES];
static int n_wires;
static int to_lose; /* large frames of the first wire */

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "link: %s %s: %s\n", what, name, strerror(errno));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. */
static double uniform(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static struct frame *frame_at(struct wire *wire, size_t index)
{
    return &wire->ring[(wire->first + index) % wire->room];
}

static void grow(struct wire *wire)
{
    size_t room = wire->room ? 2 * wire->room : 16;
    struct frame *ring = malloc(room * sizeof *ring);
    if (!ring)
        fail("no memory for", wire->in_name);
    for (size_t i = 0; i < wire->count; i++)
        ring[i] = *frame_at(wire, i);
    free(wire->ring);
    wire->ring = ring;
    wire->first = 0;
    wire->room = room;
}

/* Take in what has arrived. */
static void take(struct wire *wire)
{
    for (int i = 0; i < BATCH; i++) {
        if (wire->count == wire->room)
            grow(wire);
        struct frame *frame = frame_at(wire, wire->count);
        ssize_t n = recv(wire->in_socket, frame->bytes, FRAME_BYTES, MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0)
            return; /* nothing more, or the interface is down */
        int64_t t = now_ns();
        while (wire->waiting &&
               frame_at(wire, wire->count - wire->waiting)->leaves_ns <= t)
            wire->waiting--;
        /* One of those that have not left is leaving; the others wait. */
        if (n > FRAME_BYTES || wire->waiting > wire->queue_packets) {
            wire->dropped++;
            continue;
        }
        if (wire->free_ns < t)
            wire->free_ns = t;
        wire->free_ns += (int64_t)((double)n * wire->ns_per_byte);
        frame->n_bytes = (int)n;
        frame->leaves_ns = wire->free_ns;
        frame->comes_out_ns = wire->free_ns + wire->delay_ns;
        frame->lost = uniform(&wire->random) < wire->loss;
        if (to_lose && wire == wires && n >= LARGE_BYTES) {
            frame->lost = 1;
            to_lose--;
        }
        wire->count++;
        wire->waiting++;
    }
}

/* Hand out what is due; return when the next is, or -1. */
static int64_t give(struct wire *wire)
{
    while (wire->count) {
        struct frame *frame = frame_at(wire, 0);
        if (frame->comes_out_ns > now_ns())
            return frame->comes_out_ns;
        if (frame->lost) {
            wire->lost++;
        } else if (send(wire->out_socket, frame->bytes, (size_t)frame->n_bytes, MSG_DONTWAIT) < 0) {
            wire->dropped++;
        } else {
            wire->frames++;
            wire->bytes += (uint64_t)frame->n_bytes;
        }
        wire->first = (wire->first + 1) % wire->room;
        if (wire->waiting == wire->count)
            wire->waiting--;
        wire->count--;
    }
    return -1;
}

/* One socket for each interface, for both directions. */
static int socket_of(const char *name)
{
    for (int i = 0; i < n_wires; i++) {
        if (!strcmp(wires[i].in_name, name) && wires[i].in_socket)
            return wires[i].in_socket;
        if (!strcmp(wires[i].out_name, name) && wires[i].out_socket)
            return wires[i].out_socket;
    }
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    int one = 1, room = 8 << 20;
    address.sll_ifindex = (int)if_nametoindex(name);
    if (fd < 0 || !address.sll_ifindex)
        fail("no interface", name);
    if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) < 0)
        fail("PACKET_IGNORE_OUTGOING", name);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) < 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
        fail("bind to", name);
    return fd;
}

static void read_wires(void)
{
    double rate, delay_s;
    unsigned long long seed;
    struct wire *wire = wires;
    while (n_wires < MOST_WIRES &&
           scanf("%15s %15s %lf %lf %u %lf %llu", wire->in_name, wire->out_name, &rate, &delay_s,
                 &wire->queue_packets, &wire->loss, &seed) == 7) {
        wire->ns_per_byte = 1e9 / rate;
        wire->delay_ns = (int64_t)(delay_s * 1e9);
        wire->random = seed;
        wire->in_socket = socket_of(wire->in_name);
        wire->out_socket = socket_of(wire->out_name);
        n_wires++;
        wire++;
    }
    if (!feof(stdin) || !n_wires) {
        fprintf(stderr, "link: line %d is no wire\n", n_wires + 1);
        exit(2);
    }
}

static void tell(void)
{
    for (int i = 0; i < n_wires; i++)
        printf("%s %s %llu %llu %llu %llu\n", wires[i].in_name, wires[i].out_name,
               (unsigned long long)wires[i].frames, (unsigned long long)wires[i].bytes,
               (unsigned long long)wires[i].dropped, (unsigned long long)wires[i].lost);
    printf("end\n");
    fflush(stdout);
}

int main(void)
{
    read_wires();
    /* Late frames are slow wires. An ordinary user may not have this: then delays vary more. */
    struct sched_param priority = {.sched_priority = 10};
    sched_setscheduler(0, SCHED_FIFO, &priority);

    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int told = signalfd(-1, &signals, SFD_CLOEXEC);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = MOST_WIRES};
    epoll_ctl(poll, EPOLL_CTL_ADD, told, &event);
    event.data.u32 = MOST_WIRES + 1;
    epoll_ctl(poll, EPOLL_CTL_ADD, timer, &event);
    for (int i = 0; i < n_wires; i++) {
        event.data.u32 = (uint32_t)i;
        if (epoll_ctl(poll, EPOLL_CTL_ADD, wires[i].in_socket, &event) < 0)
            fail("an interface is the entrance twice:", wires[i].in_name);
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct epoll_event events[64];
        int n = epoll_wait(poll, events, 64, -1);
        for (int i = 0; i < n; i++) {
            uint32_t which = events[i].data.u32;
            if (which < MOST_WIRES) {
                take(&wires[which]);
            } else if (which == MOST_WIRES) {
                struct signalfd_siginfo info;
                if (read(told, &info, sizeof info) != sizeof info)
                    continue;
                if (info.ssi_signo == SIGUSR2) {
                    to_lose++;
                    continue;
                }
                tell();
                if (info.ssi_signo != SIGUSR1)
                    return 0;
            } else {
                uint64_t expired;
                if (read(timer, &expired, sizeof expired) < 0)
                    continue;
            }
        }
        int64_t next_ns = -1;
        for (int i = 0; i < n_wires; i++) {
            int64_t due_ns = give(&wires[i]);
            if (due_ns >= 0 && (next_ns < 0 || due_ns < next_ns))
                next_ns = due_ns;
        }
        /* All zero stops the timer. */
        struct itimerspec due = {.it_value = {0, 0}};
        if (next_ns >= 0) {
            due.it_value.tv_sec = next_ns / 1000000000;
            due.it_value.tv_nsec = next_ns % 1000000000;
        }
        timerfd_settime(timer, TFD_TIMER_ABSTIME, &due, NULL);
    }
}
