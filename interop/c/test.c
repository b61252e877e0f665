/* Replays the vectors (chapter 19 of docs/protocol.md): makes the calls of each line
 * and compares every value. Then feeds a session with damaged datagrams, and a client
 * with what it must ignore.
 *
 *   test file.json …
 */
#include "ackbits.h"
#include "check.h"
#include "endpoint_test.h"
#include "lane.h"
#include "libcrypto.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ab_session *session;
static ab_lane *lane;
static ab_aead seal_with, open_with;

static void compare_events(const ab_event *events, size_t count) {
    static char text[4 * LINE];
    char *p = text;
    *p = 0;
    for (size_t i = 0; i < count; i++) {
        p += sprintf(p, "%s%d:", i > 0 ? "," : "", events[i].id);
        p = hex(p, events[i].data, events[i].size);
    }
    compare("events", text);
}

/* ---- The steps of a session (19.3) ---- */

static ab_decision decide(void *context, uint8_t type, const uint8_t *payload, size_t size) {
    (void)context;
    (void)type;
    if (size > 0 && payload[0] == 0xEE)
        return AB_REFUSE;
    return size > 0 && payload[0] == 0xDD ? AB_WITHHOLD : AB_TAKE;
}

static ab_aead aes_gcm(const uint8_t key[16]) {
    ab_aead a;
    if (!libcrypto_aead(key, 16, &a))
        exit(2);
    return a;
}

static void end_session(void) {
    ab_free(session);
    session = NULL;
    libcrypto.free_aead(NULL, &seal_with);
    libcrypto.free_aead(NULL, &open_with);
    seal_with.key = open_with.key = NULL;
}

static void begin_session(void) {
    ab_config c = ab_default_config(strtoull(string_of("token"), NULL, 16));
    c.wide = number_of("wide");
    c.ordered = number_of("ordered");
    c.bundle = number_of("bundle");
    c.outcomes = number_of("outcomes");
    c.heartbeat = number_of("heartbeat");
    c.timeout = number_of("timeout");
    c.resend = number_of("resend");
    c.loss = number_of("loss");
    c.stall = number_of("stall");
    c.poll = number_of("poll");
    c.backlog = (int)number_of("backlog");
    c.max_datagram = (size_t)number_of("max_datagram");
    if (number_of("accept"))
        c.accept = decide;
    uint8_t key[LINE / 2];
    end_session();
    if (bytes_of("seal", key) == 16) {
        seal_with = aes_gcm(key);
        bytes_of("open", key);
        open_with = aes_gcm(key);
        c.seal = &seal_with;
        c.open = &open_with;
    }
    session = ab_new(&c);
    if (!session)
        exit(2);
}

static void receive(int64_t now) {
    static const char *const arrivals[] = {"", "newest", "late", "duplicate", "stale"};
    uint8_t datagram[LINE / 2];
    size_t size = bytes_of("datagram", datagram);
    uint8_t *exact = malloc(size + 1); /* so that a read past its end is found */
    memcpy(exact, datagram, size);
    ab_incoming in;
    compare("error", ab_error_name(ab_receive(session, now, exact, size, &in)));
    compare("arrival", arrivals[in.arrival]);
    compare_number("type", in.type);
    compare_number("seq", in.seq);
    compare_number("latest", in.latest);
    compare_number("handed", in.delivered);
    compare_bytes("payload", in.payload, in.payload_size);
    compare_events(in.events, in.event_count);
    free(exact);
}

static void send(int64_t now, int64_t count) {
    uint8_t event[LINE / 2];
    size_t size = bytes_of("event", event);
    ab_error e = AB_OK;
    uint16_t id = 0;
    for (; count > 0; count--)
        e = ab_send(session, now, event, size, &id);
    compare("error", ab_error_name(e));
    compare_number("id", id);
}

static void append(int64_t now, int64_t count) {
    uint8_t payload[LINE / 2], out[AB_MAX_DATAGRAM];
    size_t payload_size = bytes_of("payload", payload), size = 0;
    ab_error e = AB_OK;
    uint16_t seq = 0;
    for (; count > 0; count--)
        e = ab_append_datagram(session, now, (uint8_t)number_of("type"), payload, payload_size, out, &size, &seq);
    compare("error", ab_error_name(e));
    compare_bytes("datagram", out, size);
    compare_number("seq", seq);
}

static void due(int64_t now) {
    uint8_t out[AB_MAX_DATAGRAM];
    compare_bytes("datagram", out, ab_due(session, now, out));
}

static void outcome(int64_t now) {
    ab_outcome o = {0, 0, false, 0};
    compare_number("found", ab_next_outcome(session, now, &o));
    compare_number("seq", o.seq);
    compare_number("type", o.type);
    compare_number("delivered", o.delivered);
    compare_number("rtt", o.rtt);
}

static void compare_state(void) {
    ab_state s = ab_state_of(session);
    char bits[17];
    snprintf(bits, sizeof bits, "%016" PRIx64, s.history);
    compare_number("ack", s.ack);
    compare("bits", bits);
    compare_number("in_flight", (int64_t)s.in_flight);
    compare_number("room", (int64_t)s.room);
    compare_number("srtt", s.srtt);
    compare_number("rttvar", s.rttvar);
    compare_number("deadline", ab_deadline(session));
    compare("ended", ab_error_name(s.ended));
}

/* ---- The steps of a lane (19.4) ---- */

static void begin_lane(void) {
    ab_lane_config c = ab_default_lane_config();
    c.resend = number_of("resend");
    c.slot = number_of("wake");
    c.budget = (size_t)number_of("budget");
    c.soft = (size_t)number_of("soft");
    c.hard = (size_t)number_of("hard");
    c.stall = number_of("stall");
    ab_lane_free(lane);
    lane = ab_lane_new(&c);
    if (!lane)
        exit(2);
}

static void lane_send(int64_t now) {
    uint8_t event[LINE / 2];
    size_t size = bytes_of("event", event);
    uint32_t id = 0;
    compare("error", ab_error_name(ab_lane_send(lane, now, event, size, number_of("droppable"), &id)));
    compare_number("id", id);
}

static void lane_next(int64_t now) {
    uint32_t id = 0;
    const uint8_t *data = NULL;
    size_t size = 0;
    compare_number("found", ab_lane_next(lane, now, (size_t)number_of("max"), &id, &data, &size));
    compare_number("id", id);
    compare_bytes("event", data, size);
}

static void lane_receive(void) {
    uint32_t ack;
    compare_number("deliver", ab_lane_receive(lane, (uint32_t)number_of("id"), &ack));
    compare_number("answer", ack);
}

static void compare_lane(void) {
    ab_lane_state s = ab_lane_state_of(lane);
    compare_number("in_flight", (int64_t)s.in_flight);
    compare_number("ack", s.ack);
    compare_number("deadline", ab_lane_deadline(lane));
    compare("ended", ab_error_name(s.ended));
}

/* ---- Lines and files ---- */

static void lane_step(const char *what) {
    if (strcmp(what, "lane") == 0) {
        begin_lane();
        return;
    }
    int64_t now = strcmp(what, "lane_receive") == 0 ? 0 : number_of("at");
    if (strcmp(what, "lane_send") == 0)
        lane_send(now);
    else if (strcmp(what, "lane_next") == 0)
        lane_next(now);
    else if (strcmp(what, "lane_receive") == 0)
        lane_receive();
    else if (strcmp(what, "lane_ack") == 0)
        compare("error", ab_error_name(ab_lane_ack(lane, now, (uint32_t)number_of("ack_in"))));
    else
        exit(2);
    compare_lane();
}

static void session_step(const char *what) {
    if (strcmp(what, "new") == 0) {
        begin_session();
        return;
    }
    int64_t now = number_of("at");
    if (strcmp(what, "receive") == 0)
        receive(now);
    else if (strcmp(what, "send") == 0)
        send(now, 1);
    else if (strcmp(what, "sends") == 0)
        send(now, number_of("count"));
    else if (strcmp(what, "append") == 0)
        append(now, 1);
    else if (strcmp(what, "burst") == 0)
        append(now, number_of("count"));
    else if (strcmp(what, "due") == 0)
        due(now);
    else if (strcmp(what, "outcome") == 0)
        outcome(now);
    else if (strcmp(what, "close") == 0)
        ab_close(session, now);
    else if (strcmp(what, "shutdown") == 0)
        ab_shutdown(session, now, number_of("patience"));
    else
        exit(2);
    compare_state();
}

static void replay(const char *file) {
    FILE *f = fopen(file, "r");
    if (!f) {
        perror(file);
        exit(2);
    }
    at.file = file;
    int compared = at.compared;
    for (at.line = 1; fgets(at.text, sizeof at.text, f); at.line++) {
        if (at.text[0] != '{')
            continue;
        const char *what = string_of("do");
        if (strncmp(what, "lane", 4) == 0)
            lane_step(what);
        else
            session_step(what);
    }
    fclose(f);
    printf("%s: %d values\n", file, at.compared - compared);
}

/* ---- Damage ---- */

enum { EVENTS = 5000 };

static uint32_t random_below(uint32_t n) {
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 33) % n;
}

/* A copy of a datagram with a few bytes changed, cut, or replaced by others. */
static size_t damage(uint8_t *to, const uint8_t *from, size_t size) {
    memcpy(to, from, size);
    if (random_below(2) == 0)
        size = random_below((uint32_t)size + 1);
    for (uint32_t n = random_below(5); n > 0 && size > 0; n--)
        to[random_below(10) == 0 ? random_below((uint32_t)size) : size - 1 - random_below((uint32_t)(size < 20 ? size : 20))] ^= (uint8_t)random_below(256);
    return size;
}

static bool same_state(const ab_session *s, ab_state before) {
    ab_state now = ab_state_of(s);
    return now.ack == before.ack && now.history == before.history && now.in_flight == before.in_flight && now.ended == before.ended;
}

/* Hands s a damaged copy and then, unless it is lost, the datagram; returns how many
 * events they brought, -1 if something is wrong. */
static int hand_in(ab_session *s, int64_t now, const uint8_t *datagram, size_t size, bool sealed, uint8_t *seen) {
    uint8_t damaged[AB_MAX_DATAGRAM];
    size_t damaged_size = damage(damaged, datagram, size);
    bool changed = damaged_size != size || memcmp(damaged, datagram, size) != 0;
    ab_incoming in;
    ab_state before = ab_state_of(s);
    ab_error e = ab_receive(s, now, damaged, damaged_size, &in);
    if (e && !same_state(s, before))
        return -1;
    if (sealed && changed && !e)
        return -1;
    int count = 0;
    for (bool again = random_below(5) > 0;; again = false) {
        for (size_t i = 0; i < in.event_count; i++)
            if (sealed && seen[in.events[i].id]++ > 0)
                return -1;
        count += (int)in.event_count;
        if (!again)
            return count;
        ab_receive(s, now, datagram, size, &in);
    }
}

/* Two peers between whom a fifth is lost and everything comes damaged, too. Sealed, each
 * event must arrive once; bare, damage is only to do no harm to the program. */
static bool survives(bool sealed, bool ordered) {
    static uint8_t seen[EVENTS];
    static const uint8_t bytes[AB_MAX_DATAGRAM];
    memset(seen, 0, sizeof seen);
    ab_config c = ab_default_config(UINT64_C(0x1122334455667788));
    ab_aead one = aes_gcm((const uint8_t *)"one key of 16 by"), other = aes_gcm((const uint8_t *)"the other key of");
    c.ordered = ordered;
    c.bundle = true;
    c.accept = sealed ? NULL : decide;
    c.seal = sealed ? &one : NULL;
    c.open = sealed ? &other : NULL;
    ab_session *a = ab_new(&c);
    c.seal = sealed ? &other : NULL;
    c.open = sealed ? &one : NULL;
    ab_session *b = ab_new(&c);
    int sent = 0, received = 0;
    bool ok = true;
    for (int64_t now = 0; ok && received < EVENTS && now < INT64_C(600000000000); now += 10000000) {
        uint8_t out[AB_MAX_DATAGRAM];
        uint16_t id;
        size_t size;
        for (; sent < EVENTS && ab_state_of(a).room > 0; sent++)
            ab_send(a, now, bytes, random_below(40), &id);
        if (ab_append_datagram(a, now, AB_INPUT, bytes, random_below(400), out, &size, &id) == AB_OK) {
            int n = hand_in(b, now, out, size, sealed, seen);
            ok = n >= 0;
            received += n;
        }
        while (ok && (size = ab_due(a, now, out)) > 0) {
            int n = hand_in(b, now, out, size, sealed, seen);
            ok = n >= 0;
            received += n;
        }
        while (ok && (size = ab_due(b, now, out)) > 0)
            ok = hand_in(a, now, out, size, sealed, seen) >= 0;
        if (ab_state_of(a).ended || ab_state_of(b).ended) /* a bare session may be talked into it */
            break;
    }
    ab_free(a);
    ab_free(b);
    libcrypto.free_aead(NULL, &one);
    libcrypto.free_aead(NULL, &other);
    return ok && (!sealed || received == EVENTS);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strstr(argv[i], "handshake"))
            replay_handshakes(argv[i]);
        else
            replay(argv[i]);
    end_session();
    ab_lane_free(lane);
    printf("%d values compared, %d differ\n", at.compared, at.differ);
    bool ok = at.compared > 0 && at.differ == 0;
    for (int i = 0; i < 200; i++)
        ok = survives(i % 10 == 0, i % 2 == 0) && ok;
    printf("damaged datagrams: %s\n", ok ? "ok" : "FAILED");
    ok = try_client() && ok;
    return !ok;
}
