/* A peer of interop/live: 10,000 events each way over UDP on 127.0.0.1 and a link that
 * loses, doubles and reorders. Ends with 0 if everything was as that program asks. With
 * join it is refused by a server first, then admitted, and moves to another port half-way.
 *
 *   live bare|sealed|join narrow|wide any|ordered port
 */
#define _POSIX_C_SOURCE 200809L

#include "ackbits.h"
#include "libcrypto.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <openssl/rand.h>
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

/* The public half of the server's key. */
static const uint8_t server_key[32] = {
    0x8F, 0x40, 0xC5, 0xAD, 0xB6, 0x8F, 0x25, 0x62, 0x4A, 0xE5, 0xB2, 0x14, 0xEA, 0x76, 0x7A, 0x6E,
    0xC9, 0x4D, 0x82, 0x9D, 0x3D, 0x7B, 0x5E, 0x1A, 0xD1, 0xBA, 0x6F, 0x3E, 0x21, 0x38, 0x28, 0x5F,
};

static struct {
    int socket;
    const char *port;
    ab_session *session; /* null until the client has one */
    bool joins;
    ab_client client; /* if it joins */
    int refusals, moves;
    bool ordered;
    uint32_t sent, received;
    bool seen[EVENTS];
    uint32_t counter;       /* of our Inputs */
    uint32_t latest, states; /* of their Snapshots */
} peer;

static void fail(const char *what) {
    ab_state s = {0};
    if (peer.session)
        s = ab_state_of(peer.session);
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

/* ---- The session, or the client that has one once it is admitted ---- */

static size_t due(int64_t now, uint8_t out[AB_MAX_DATAGRAM]) {
    return peer.joins ? ab_client_due(&peer.client, now, out) : ab_due(peer.session, now, out);
}

static ab_error receive(int64_t now, const uint8_t *datagram, size_t size, ab_incoming *in) {
    if (!peer.joins)
        return ab_receive(peer.session, now, datagram, size, in);
    ab_error e = ab_client_receive(&peer.client, now, datagram, size, in);
    peer.session = ab_client_session(&peer.client);
    return e;
}

static int64_t deadline(void) { return peer.joins ? ab_client_deadline(&peer.client) : ab_deadline(peer.session); }

static ab_error ended(void) { return peer.joins ? ab_client_ended(&peer.client) : ab_state_of(peer.session).ended; }

static void flush(int64_t now) {
    uint8_t out[AB_MAX_DATAGRAM];
    for (size_t size; (size = due(now, out)) > 0;)
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
    ab_error e = receive(now, datagram, (size_t)size, &in);
    if (e && e != AB_REPLAYED && e != AB_IGNORED && !ended())
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
    int64_t wait = (deadline() < tick_at ? deadline() : tick_at) - now;
    struct pollfd p = {peer.socket, POLLIN, 0};
    poll(&p, 1, wait > 0 ? (int)(wait / 1000000) + 1 : 0);
}

static void connect_to_port(void) {
    struct sockaddr_in to;
    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)atoi(peer.port));
    peer.socket = socket(AF_INET, SOCK_DGRAM, 0);
    if (peer.socket < 0 || connect(peer.socket, (struct sockaddr *)&to, sizeof to) < 0) {
        perror("live.c");
        exit(1);
    }
}

/* Goes on from another port, as a client does whose address has changed. */
static void move(void) {
    peer.moves++;
    int before = peer.socket;
    connect_to_port();
    close(before);
}

static void knock(ab_config session, int64_t now, const char *hello) {
    uint8_t private_key[32];
    session.start = now;
    ab_client_config c = {&libcrypto, private_key, server_key, (const uint8_t *)hello, strlen(hello), session};
    if (RAND_bytes(private_key, sizeof private_key) != 1 || !ab_client_begin(&peer.client, &c))
        fail("the client does not begin");
}

/* Comes with a better hello, after the refusal that it expects. */
static void knock_again(const ab_config *session, int64_t now) {
    size_t size;
    if (peer.refusals++ > 0 || strcmp((const char *)ab_client_said(&peer.client, &size), "not you") != 0)
        fail("refused again, or for another reason");
    ab_client_end(&peer.client);
    knock(*session, now, "somebody");
}

static void play(const ab_config *session) {
    int64_t start = clock_now(), now = 0, tick_at = 0;
    if (peer.joins)
        knock(*session, now, "nobody");
    while (!ended()) {
        wait_until(now, tick_at);
        now = clock_now() - start;
        accept_datagram(now);
        flush(now);
        if (ended() == AB_REFUSED)
            knock_again(session, now);
        if (peer.joins && peer.moves == 0 && peer.received > EVENTS / 2)
            move();
        if (now >= tick_at && peer.session && !ended()) {
            tick(now);
            flush(now);
        }
        if (now >= tick_at)
            tick_at = now + TICK;
        if (now > LIMIT)
            fail("not done in time");
    }
}

static void check(void) {
    size_t size;
    if (ended() != AB_PEER_LEFT || !peer.session)
        fail(ab_error_name(ended()));
    if (peer.received != EVENTS || peer.sent != EVENTS || ab_state_of(peer.session).in_flight > 0 || peer.states == 0)
        fail("not everything arrived");
    if (peer.joins && (peer.refusals != 1 || strcmp((const char *)ab_client_said(&peer.client, &size), "welcome") != 0))
        fail("it was not refused first, or the server said something else");
}

/* A session whose token and keys both sides know. */
static void begin_session(ab_config c, bool sealed, ab_aead *seal, ab_aead *open) {
    if (!libcrypto_aead(our_key, sizeof our_key, seal) || !libcrypto_aead(their_key, sizeof their_key, open))
        fail("libcrypto failed");
    if (sealed) {
        c.seal = seal;
        c.open = open;
    }
    peer.session = ab_new(&c);
    if (!peer.session)
        fail("no memory");
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: live bare|sealed|join narrow|wide any|ordered port\n");
        return 2;
    }
    ab_config c = ab_default_config(UINT64_C(0x1122334455667788));
    ab_aead seal = {0}, open = {0};
    c.wide = strcmp(argv[2], "wide") == 0;
    c.ordered = peer.ordered = strcmp(argv[3], "ordered") == 0;
    c.bundle = true;
    peer.port = argv[4];
    peer.joins = strcmp(argv[1], "join") == 0;
    if (!peer.joins)
        begin_session(c, strcmp(argv[1], "sealed") == 0, &seal, &open);
    connect_to_port();
    play(&c);
    check();
    printf("live.c: %s, %s: %d events each way, round trip %" PRId64 " ms\n", argv[1], argv[2], EVENTS, ab_state_of(peer.session).srtt / 1000000);
    if (peer.joins)
        ab_client_end(&peer.client);
    else
        ab_free(peer.session);
    libcrypto.free_aead(NULL, &seal);
    libcrypto.free_aead(NULL, &open);
    close(peer.socket);
    return 0;
}
