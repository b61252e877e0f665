/* A peer of interop/live: 10,000 events each way over UDP on 127.0.0.1 and a link that
 * loses, doubles and reorders. Ends with 0 if everything was as that program asks.
 *
 *   live bare|sealed narrow|wide any|ordered port
 */
#define _POSIX_C_SOURCE 200809L

#include "ackbits.h"
#include "gcm.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 10000, LONGEST_EVENT = 4 + 63 };

#define SECOND INT64_C(1000000000)
#define TICK (SECOND / 66)
#define LIMIT (30 * SECOND)

static const uint8_t our_key[16] = {0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F};
static const uint8_t their_key[16] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F};

static struct {
    int socket;
    ab_session *session;
    bool ordered;
    uint32_t sent, received;
    bool seen[EVENTS];
    uint32_t counter;       /* of our Inputs */
    uint32_t latest, states; /* of their Snapshots */
} peer;

static void fail(const char *what) {
    ab_state s = ab_state_of(peer.session);
    fprintf(stderr, "live.c: %s (ended: \"%s\"; %" PRIu32 " events received, %" PRIu32 " sent, %zu in flight)\n",
            what, ab_error_name(s.ended), peer.received, peer.sent, s.in_flight);
    exit(1);
}

static int64_t clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static void put32(uint8_t *p, uint32_t v) {
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static uint32_t get32(const uint8_t *p) { return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24; }

static size_t make_event(uint32_t i, uint8_t event[LONGEST_EVENT]) {
    put32(event, i);
    memset(event + 4, (uint8_t)i, i % 64);
    return 4 + i % 64;
}

/* What the network refuses is lost, and comes again. */
static void put_on_wire(const uint8_t *datagram, size_t size) { (void)!send(peer.socket, datagram, size, 0); }

static void flush(int64_t now) {
    uint8_t out[AB_MAX_DATAGRAM];
    for (size_t size; (size = ab_due(peer.session, now, out)) > 0;)
        put_on_wire(out, size);
}

static void take_event(const ab_event *e) {
    uint8_t want[LONGEST_EVENT];
    if (e->size < 4 || get32(e->data) >= EVENTS)
        fail("an event that was never sent");
    uint32_t i = get32(e->data);
    if (e->size != make_event(i, want) || memcmp(e->data, want, e->size) != 0)
        fail("an event with other bytes");
    if (peer.seen[i])
        fail("an event came twice");
    if (peer.ordered && i != peer.received)
        fail("an event out of order");
    peer.seen[i] = true;
    peer.received++;
}

static void take_snapshot(const ab_incoming *in) {
    if (in->type != AB_SNAPSHOT || in->payload_size < 4)
        fail("a datagram of another type than Snapshot");
    uint32_t counter = get32(in->payload);
    if (peer.states++ > 0 && counter <= peer.latest)
        fail("the latest Snapshot is older than the one before");
    peer.latest = counter;
}

static void accept_datagram(int64_t now) {
    uint8_t datagram[2048];
    ssize_t size = recv(peer.socket, datagram, sizeof datagram, MSG_DONTWAIT);
    if (size < 0)
        return;
    ab_incoming in;
    ab_error e = ab_receive(peer.session, now, datagram, (size_t)size, &in);
    if (e && e != AB_REPLAYED && !ab_state_of(peer.session).ended)
        fail(ab_error_name(e));
    for (size_t i = 0; i < in.event_count; i++)
        take_event(&in.events[i]);
    if (in.latest)
        take_snapshot(&in);
}

static void tick(int64_t now) {
    uint8_t event[LONGEST_EVENT], counter[4], out[AB_MAX_DATAGRAM];
    uint16_t id;
    size_t size;
    for (; peer.sent < EVENTS && ab_state_of(peer.session).room > 0; peer.sent++)
        if (ab_send(peer.session, now, event, make_event(peer.sent, event), &id) != AB_OK)
            fail("an event was refused");
    put32(counter, ++peer.counter);
    if (ab_append_datagram(peer.session, now, AB_INPUT, counter, sizeof counter, out, &size, &id) == AB_OK)
        put_on_wire(out, size);
}

/* Waits until something comes, the session has something to do, or the next tick. */
static void wait_until(int64_t now, int64_t tick_at) {
    int64_t deadline = ab_deadline(peer.session);
    int64_t wait = (deadline < tick_at ? deadline : tick_at) - now;
    struct pollfd p = {peer.socket, POLLIN, 0};
    poll(&p, 1, wait > 0 ? (int)(wait / 1000000) + 1 : 0);
}

static void play(void) {
    int64_t start = clock_now(), now = 0, tick_at = 0;
    while (!ab_state_of(peer.session).ended) {
        wait_until(now, tick_at);
        now = clock_now() - start;
        accept_datagram(now);
        flush(now);
        if (now >= tick_at && !ab_state_of(peer.session).ended) {
            tick(now);
            flush(now);
            tick_at = now + TICK;
        }
        if (now > LIMIT)
            fail("not done in time");
    }
}

static void connect_to(const char *port) {
    struct sockaddr_in to;
    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)atoi(port));
    peer.socket = socket(AF_INET, SOCK_DGRAM, 0);
    if (peer.socket < 0 || connect(peer.socket, (struct sockaddr *)&to, sizeof to) < 0) {
        perror("live.c");
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: live bare|sealed narrow|wide any|ordered port\n");
        return 2;
    }
    ab_config c = ab_default_config(UINT64_C(0x1122334455667788));
    ab_aead seal = aes_gcm(our_key), open = aes_gcm(their_key);
    if (strcmp(argv[1], "sealed") == 0) {
        c.seal = &seal;
        c.open = &open;
    }
    c.wide = strcmp(argv[2], "wide") == 0;
    c.ordered = peer.ordered = strcmp(argv[3], "ordered") == 0;
    c.bundle = true;
    peer.session = ab_new(&c);
    if (!peer.session)
        return 1;
    connect_to(argv[4]);
    play();
    ab_state s = ab_state_of(peer.session);
    if (s.ended != AB_PEER_LEFT || peer.received != EVENTS || peer.sent != EVENTS || s.in_flight > 0 || peer.states == 0)
        fail("not everything arrived");
    printf("live.c: %s, %s: %d events each way, round trip %" PRId64 " ms\n", argv[1], argv[2], EVENTS, s.srtt / 1000000);
    ab_free(peer.session);
    close(peer.socket);
    return 0;
}
