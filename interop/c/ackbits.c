#include "ackbits.h"

#include <stdlib.h>
#include <string.h>

enum {
    HEADER = 18, WIDE_HEADER = 22,          /* P-2.1.3 */
    LIST_COUNT = 1, EVENT_HEAD = 4,         /* 5.1 */
    LIST_MAX = 255,
    SEND_WINDOW = 256,                      /* P-5.2.2 */
    MAX_BACKLOG = 65024,                    /* P-5.2.3 */
    WINDOW = 4096, ORDERED_WINDOW = 256,    /* 5.3, P-9.1.2 */
    HALF = 32768,                           /* P-3.1.4, P-4.2.6 */
    REMEMBERED = 256,                       /* P-4.2.6 */
    OUTCOMES = 1024,                        /* P-7.2.5 */
    DISCONNECTS = 3                         /* P-8.4.2 */
};

#define MS INT64_C(1000000)
#define REMEMBERED_LOST (6000 * MS)         /* P-4.2.6 */
#define SEALED_MAX (INT64_C(1) << 28)       /* P-11.4.1 */
#define FORGED_MAX (UINT64_C(1) << 36)      /* P-11.4.1 */

const char *ab_error_name(ab_error e) {
    static const char *const names[] = {
        "", "short", "oversize", "format", "token", "replayed", "forged", "type", "payload", "window", "rejected",
        "event-too-large", "datagram-too-large", "reserved-type",
        "timeout", "peer-left", "closed", "unacknowledged", "stalled", "key-exhausted", "no-memory",
        "lane-full", "lane-overflow", "ack",
        "ignored", "refused", "reset", "version", "server-key",
    };
    return names[e];
}

/* Sums of times do not wrap around (P-1.1.3). */
static int64_t after(int64_t t, int64_t d) { return d > INT64_MAX - t ? INT64_MAX : t + d; }
static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

/* Integers on the wire are little-endian (P-2.1.1). */

static void put(uint8_t *p, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static uint64_t get(const uint8_t *p, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

/* ---- Sequences and the tracker (chapter 3, 4.1) ---- */

/* Whether a comes after b (P-3.1.2). */
static bool newer(uint16_t a, uint16_t b) {
    uint16_t step = (uint16_t)(a - b);
    return step >= 1 && step < HALF;
}

typedef struct tracker {
    uint16_t ack; /* 65535 at the start */
    uint64_t history;
    bool started;
} tracker;

/* The arrival of a sequence, before it is accepted (P-4.1.2). */
static ab_arrival classify(const tracker *t, uint16_t seq) {
    uint16_t back = (uint16_t)(t->ack - seq);
    if (newer(seq, t->ack))
        return AB_NEWEST;
    if (!t->started || back > 64)
        return AB_STALE;
    if (back == 0 || t->history >> (back - 1) & 1)
        return AB_DUPLICATE;
    return AB_LATE;
}

/* Notes a sequence that is Newest or Late. */
static void track(tracker *t, uint16_t seq) {
    uint16_t back = (uint16_t)(t->ack - seq), step = (uint16_t)(seq - t->ack);
    if (!newer(seq, t->ack)) { /* P-4.1.4 */
        t->history |= UINT64_C(1) << (back - 1);
        return;
    }
    t->history = step < 64 ? t->history << step : 0; /* P-4.1.3 */
    if (t->started && step <= 64)
        t->history |= UINT64_C(1) << (step - 1);
    t->ack = seq;
    t->started = true;
}

/* ---- The list of events, and what a payload holds (5.1, chapter 10) ---- */

static bool next_event(const uint8_t **p, const uint8_t *end, ab_event *e) {
    if (end - *p < EVENT_HEAD)
        return false;
    e->id = (uint16_t)get(*p, 2);
    e->size = (size_t)get(*p + 2, 2);
    e->data = *p + EVENT_HEAD;
    if ((size_t)(end - e->data) < e->size)
        return false;
    *p = e->data + e->size;
    return true;
}

/* The length of the list at the beginning of these bytes; 0 where there is none. */
static size_t list_size(const uint8_t *list, size_t size) {
    if (size == 0 || list[0] == 0)
        return 0;
    const uint8_t *p = list + LIST_COUNT;
    ab_event e;
    for (int i = 0; i < list[0]; i++)
        if (!next_event(&p, list + size, &e))
            return 0;
    return (size_t)(p - list);
}

static bool is_application(uint8_t type) { return (type >= 1 && type <= 4) || type >= 16; }

typedef struct content {
    uint8_t type;           /* of a Bundle: the inner one */
    bool application;
    const uint8_t *list;    /* null: no events */
    size_t list_size;
    const uint8_t *payload; /* of an application datagram */
    size_t payload_size;
} content;

/* Checks 8 and 9 of P-2.3.2. */
static ab_error parse(uint8_t type, const uint8_t *payload, size_t size, content *c) {
    memset(c, 0, sizeof *c);
    c->type = type;
    c->application = is_application(type);
    switch (type) {
    case AB_EVENT: /* P-5.1.1 */
        c->list = payload;
        c->list_size = list_size(payload, size);
        return c->list_size > 0 && c->list_size == size ? AB_OK : AB_PAYLOAD;
    case AB_HEARTBEAT: /* P-2.2.3 */
    case AB_DISCONNECT:
        return size == 0 ? AB_OK : AB_PAYLOAD;
    case AB_BUNDLE: /* P-10.1.2 */
        if (size == 0 || !is_application(payload[0]))
            return AB_PAYLOAD;
        c->type = payload[0];
        c->application = true;
        c->list = payload + 1;
        c->list_size = list_size(c->list, size - 1);
        c->payload = c->list + c->list_size;
        c->payload_size = size - 1 - c->list_size;
        return c->list_size > 0 ? AB_OK : AB_PAYLOAD;
    }
    c->payload = payload;
    c->payload_size = size;
    return c->application ? AB_OK : AB_TYPE; /* P-2.2.1 */
}

/* ---- The receiver's window of event ids (5.3) ---- */

typedef struct window {
    uint16_t oldest; /* that was not received */
    uint8_t has[WINDOW / 8];
} window;

static bool has(const window *w, uint16_t id) { return w->has[id % WINDOW / 8] >> id % 8 & 1; }

/* Notes a new id (P-5.3.3). */
static void receive_id(window *w, uint16_t id) {
    w->has[id % WINDOW / 8] |= (uint8_t)(1 << id % 8);
    for (; has(w, w->oldest); w->oldest++)
        w->has[w->oldest % WINDOW / 8] &= (uint8_t)~(1 << w->oldest % 8);
}

/* Takes the ids of a well-formed list into w, and its new events into fresh, which has
 * room for LIST_MAX. False if one is outside (P-5.3.1, P-5.3.2). */
static bool receive_list(window *w, uint16_t width, const content *c, ab_event *fresh, size_t *fresh_count) {
    *fresh_count = 0;
    const uint8_t *p = c->list + LIST_COUNT, *end = c->list + c->list_size;
    for (ab_event e; next_event(&p, end, &e);) {
        uint16_t ahead = (uint16_t)(e.id - w->oldest);
        if (ahead >= width && ahead <= HALF)
            return false;
        if (ahead >= width || has(w, e.id))
            continue;
        receive_id(w, e.id);
        fresh[(*fresh_count)++] = e;
    }
    return true;
}

/* ---- The session ---- */

/* An event to send (15.3). */
typedef struct outgoing {
    uint8_t *data; /* null once delivered */
    size_t size;
    uint64_t copies;
    int64_t first_at, last_at; /* of the copies */
} outgoing;

typedef enum outcome { UNDECIDED, DELIVERED, LOST } outcome;

/* A datagram that was sent (15.2). All events of it are within one send window. */
typedef struct sent {
    int64_t at, lost_at;
    uint64_t first_event;
    uint8_t events[SEND_WINDOW / 8]; /* bit i: it carried first_event + i */
    uint8_t type;             /* of a Bundle: the inner one */
    uint8_t outcome;
    bool acknowledged;
} sent;

/* A copy of an event that waits for an older one (chapter 9). */
typedef struct kept {
    uint8_t *data; /* null: none */
    size_t size;
} kept;

typedef enum state { LIVE, CLOSING, LEAVING } state; /* 15.1; ended is an ab_error */

struct ab_session {
    ab_config config;
    uint8_t format;
    size_t header, room; /* room: L - H - S, what a payload may have */
    int64_t beat;        /* of P-6.3.2 */

    int64_t reading, now; /* the last reading, and the time that it stands for */
    int64_t heard_at, sent_at;
    int received_since_sent;
    state state;
    ab_error ended;
    int64_t patience_end; /* when closing */
    int64_t left_at;      /* when leaving */
    int disconnects;

    /* Datagrams received. */
    tracker tracker;
    int64_t newest;      /* number of tracker.ack; -1 at the start */
    int64_t latest[256]; /* of each type, the newest number; -1: none */
    tracker replays;     /* of a sealed session (11.3) */
    int64_t newest_opened;
    uint64_t forged;
    uint8_t opened[AB_MAX_DATAGRAM];

    /* Events received. */
    window window;
    ab_event events[2 * LIST_MAX]; /* of the last call: its list, and those kept until then */
    size_t event_count;
    uint16_t next_in_order;
    kept kept[ORDERED_WINDOW];
    uint8_t *released[2 * LIST_MAX]; /* copies that the caller sees until the next call */
    size_t released_count;

    /* Datagrams sent: those of numbers first_sent to next_sent - 1 are remembered. */
    sent *log;
    int64_t log_size; /* a power of two */
    int64_t first_sent, next_sent;
    int64_t newest_acknowledged; /* -1: none */
    int64_t first_undecided;     /* none before it is undecided */
    int64_t srtt, rttvar;
    bool sampled;
    ab_outcome outcomes[OUTCOMES];
    size_t outcome_first, outcome_count;

    /* Events to send, by number: a ring of those from the oldest undelivered one on. */
    outgoing *queue;
    uint64_t queue_size; /* a power of two */
    uint64_t oldest, next_event;
    int64_t oldest_at; /* when it became the oldest */
    size_t in_flight;
};

ab_config ab_default_config(uint64_t token) {
    ab_config c = {0};
    c.token = token;
    c.heartbeat = 50 * MS;
    c.timeout = 5000 * MS;
    c.resend = 100 * MS;
    c.loss = 1000 * MS;
    c.max_datagram = AB_MAX_DATAGRAM;
    return c;
}

static bool good_aead(const ab_aead *a) { return a->nonce_size >= 8 && a->nonce_size <= AB_MAX_NONCE && a->tag_size <= AB_MAX_TAG; }

bool ab_good_config(const ab_config *c) {
    if (c->heartbeat <= 0 || c->timeout <= c->heartbeat || c->resend <= 0 || c->loss < 0 || c->poll < 0 || c->start < 0)
        return false;
    if (c->backlog < 0 || c->backlog > MAX_BACKLOG || c->max_datagram < 128 || c->max_datagram > AB_MAX_DATAGRAM)
        return false;
    if (!c->seal != !c->open)
        return false;
    return !c->seal || (good_aead(c->seal) && good_aead(c->open) && c->seal->tag_size == c->open->tag_size);
}

ab_session *ab_new(const ab_config *config) {
    if (!ab_good_config(config))
        return NULL;
    ab_session *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->config = *config;
    s->reading = config->start;
    if (config->stall == 0) /* P-8.2.2 */
        s->config.stall = later(15000 * MS, config->timeout);
    s->format = (uint8_t)((config->seal ? 0x0C : 0x0A) + config->wide); /* P-2.1.3 */
    s->header = config->wide ? WIDE_HEADER : HEADER;
    s->room = config->max_datagram - s->header - (config->seal ? config->seal->tag_size : 0);
    s->beat = config->heartbeat;
    if (config->poll > 0) /* P-6.3.2 */
        s->beat = earlier(s->beat, later(config->heartbeat - config->poll + 1, config->poll / 2 + config->poll % 2));
    s->tracker.ack = s->replays.ack = 65535; /* P-4.1.1 */
    s->newest = s->newest_opened = s->newest_acknowledged = -1;
    for (int type = 0; type < 256; type++)
        s->latest[type] = -1;
    s->log_size = 2 * REMEMBERED;
    s->log = calloc((size_t)s->log_size, sizeof *s->log);
    /* It begins with the oldest undelivered event, behind which a whole send window may be delivered. */
    for (s->queue_size = 2 * SEND_WINDOW; s->queue_size < 2 * SEND_WINDOW + (uint64_t)config->backlog;)
        s->queue_size *= 2;
    s->queue = calloc((size_t)s->queue_size, sizeof *s->queue);
    if (!s->log || !s->queue) {
        ab_free(s);
        return NULL;
    }
    return s;
}

static void free_released(ab_session *s) {
    while (s->released_count > 0)
        free(s->released[--s->released_count]);
}

void ab_free(ab_session *s) {
    if (!s)
        return;
    free_released(s);
    for (int i = 0; i < ORDERED_WINDOW; i++)
        free(s->kept[i].data);
    for (uint64_t i = 0; s->queue && i < s->queue_size; i++)
        free(s->queue[i].data);
    free(s->queue);
    free(s->log);
    free(s);
}

static void clock_in(ab_session *s, int64_t reading) { /* a step back counts as none (P-1.1.1) */
    s->now = after(s->now, later(0, reading - s->reading)), s->reading = reading;
}

static void end(ab_session *s, ab_error reason) {
    if (!s->ended)
        s->ended = reason;
}

static outgoing *event(const ab_session *s, uint64_t number) { return &s->queue[number & (s->queue_size - 1)]; }
static sent *datagram(const ab_session *s, int64_t number) { return &s->log[number & (s->log_size - 1)]; }

/* ---- Outcomes and acknowledgements (4.2, chapter 7) ---- */

static void decide(ab_session *s, int64_t number, outcome o) {
    sent *d = datagram(s, number);
    d->outcome = (uint8_t)o;
    if (o == LOST)
        d->lost_at = s->now;
    if (!s->config.outcomes)
        return;
    ab_outcome decided = {(uint16_t)number, d->type, o == DELIVERED, o == DELIVERED ? s->now - d->at : 0};
    s->outcomes[(s->outcome_first + s->outcome_count) % OUTCOMES] = decided;
    if (s->outcome_count < OUTCOMES)
        s->outcome_count++;
    else
        s->outcome_first = (s->outcome_first + 1) % OUTCOMES; /* P-7.2.5 */
}

/* Finds out what is lost (P-7.2.2). */
static void judge(ab_session *s) {
    s->first_undecided = later(s->first_undecided, s->first_sent);
    for (; s->first_undecided < s->next_sent; s->first_undecided++) {
        const sent *d = datagram(s, s->first_undecided);
        if (d->outcome != UNDECIDED)
            continue;
        if (s->now < after(d->at, after(s->srtt, s->config.loss)))
            return;
        decide(s, s->first_undecided, LOST);
    }
}

/* Smooths a sample of the round trip, which is never negative (P-7.1.2). */
static void sample(ab_session *s, int64_t r) {
    if (!s->sampled) {
        s->sampled = true;
        s->srtt = r;
        s->rttvar = r / 2;
        return;
    }
    int64_t off = s->srtt > r ? s->srtt - r : r - s->srtt;
    s->rttvar += (off - s->rttvar) / 4;
    s->srtt += (r - s->srtt) / 8;
}

static bool carries(const sent *d, int i) { return d->events[i / 8] >> i % 8 & 1; }

static bool undelivered(const ab_session *s, uint64_t number) { return number >= s->oldest && event(s, number)->data; }

/* An event needs no copy any more (P-5.2.6). */
static void event_delivered(ab_session *s, uint64_t number) {
    outgoing *e = event(s, number);
    free(e->data);
    e->data = NULL;
    s->in_flight--;
    if (number > s->oldest)
        return;
    while (s->oldest < s->next_event && !event(s, s->oldest)->data)
        s->oldest++;
    s->oldest_at = s->now;
}

static void acknowledged(ab_session *s, int64_t number, bool by_ack) {
    if (number < s->first_sent) /* none, or no longer remembered (P-4.2.3) */
        return;
    sent *d = datagram(s, number);
    if (d->acknowledged) /* P-4.2.4 */
        return;
    d->acknowledged = true;
    s->newest_acknowledged = later(s->newest_acknowledged, number);
    if (by_ack) /* P-7.1.1 */
        sample(s, s->now - d->at);
    if (d->outcome == UNDECIDED)
        decide(s, number, DELIVERED);
    for (int i = 0; i < SEND_WINDOW; i++)
        if (carries(d, i) && undelivered(s, d->first_event + (uint64_t)i))
            event_delivered(s, d->first_event + (uint64_t)i);
}

static void read_acks(ab_session *s, uint16_t ack, uint64_t bits) {
    int64_t last = s->next_sent - 1; /* P-4.2.2 */
    uint16_t back = (uint16_t)((uint16_t)last - ack);
    int64_t number = last - back;
    if (back >= HALF || number < s->first_sent)
        return;
    for (int n = 63; n >= 0; n--)
        if (bits >> n & 1)
            acknowledged(s, number - 1 - n, false);
    acknowledged(s, number, true);
}

/* ---- Receiving (2.3) ---- */

/* Zeros and the number, big-endian (P-11.2.1). */
static void make_nonce(uint8_t nonce[AB_MAX_NONCE], const ab_aead *a, int64_t number) {
    memset(nonce, 0, AB_MAX_NONCE);
    for (size_t i = 0; i < 8; i++)
        nonce[a->nonce_size - 1 - i] = (uint8_t)((uint64_t)number >> 8 * i);
}

/* Finds the number of a sealed datagram and opens its payload (chapter 11). */
static ab_error open_payload(ab_session *s, const uint8_t *wire, size_t size) {
    const ab_aead *a = s->config.open;
    uint16_t seq = (uint16_t)get(wire + 10, 2);
    ab_arrival arrival = classify(&s->replays, seq);
    uint16_t step = (uint16_t)(seq - s->replays.ack);
    int64_t number = s->newest_opened + (step < HALF ? step : (int64_t)step - 2 * HALF); /* P-11.2.2 */
    if (arrival == AB_DUPLICATE || arrival == AB_STALE || number < 0)
        return AB_REPLAYED; /* P-11.3.1 */
    uint8_t nonce[AB_MAX_NONCE];
    make_nonce(nonce, a, number);
    if (!a->open(a->key, nonce, wire, s->header, wire + s->header, size - s->header, s->opened)) {
        if (++s->forged == FORGED_MAX)
            end(s, AB_KEY_EXHAUSTED);
        return AB_FORGED;
    }
    track(&s->replays, seq); /* P-11.3.3 */
    s->newest_opened = later(s->newest_opened, number);
    return AB_OK;
}

/* Checks 1 to 9 of P-2.3.2. */
static ab_error check(ab_session *s, const uint8_t *wire, size_t size, content *c) {
    size_t tag = s->config.seal ? s->config.seal->tag_size : 0;
    if (size < HEADER)
        return AB_SHORT;
    if (size > AB_MAX_DATAGRAM)
        return AB_OVERSIZE;
    if (wire[0] != s->format)
        return AB_FORMAT;
    if (size < s->header + tag)
        return AB_SHORT;
    if (wire[1] == 0)
        return AB_TYPE;
    if (get(wire + 2, 8) != s->config.token)
        return AB_TOKEN;
    const uint8_t *payload = wire + s->header;
    if (s->config.open) {
        ab_error e = open_payload(s, wire, size);
        if (e)
            return e;
        payload = s->opened;
    }
    return parse(wire[1], payload, size - s->header - tag, c);
}

/* Delivers new events in the order of their ids (chapter 9). */
static bool deliver_in_order(ab_session *s, const ab_event *fresh, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const ab_event *e = &fresh[i];
        if (e->id != s->next_in_order) {
            kept *k = &s->kept[e->id % ORDERED_WINDOW];
            k->data = malloc(e->size + 1); /* never null for an empty one */
            if (!k->data)
                return false;
            k->size = e->size;
            memcpy(k->data, e->data, e->size);
            continue;
        }
        s->events[s->event_count++] = *e;
        for (kept *k; (k = &s->kept[++s->next_in_order % ORDERED_WINDOW])->data; k->data = NULL) {
            ab_event from_kept = {s->next_in_order, k->size, k->data};
            s->events[s->event_count++] = from_kept;
            s->released[s->released_count++] = k->data;
        }
    }
    return true;
}

/* The decision of check 11 of P-2.3.2. */
static ab_decision ask(ab_session *s, const content *c) {
    if (!c->application || !s->config.accept)
        return AB_TAKE;
    return s->config.accept(s->config.accept_context, c->type, c->payload, c->payload_size);
}

/* Accepts what is Newest or Late; withheld tells that the application withheld it (P-2.3.5). */
static ab_error accept_datagram(ab_session *s, const content *c, uint16_t seq, ab_incoming *in, bool *withheld) {
    window w = s->window;
    ab_event fresh[LIST_MAX];
    size_t fresh_count = 0;
    if (c->list && !receive_list(&w, s->config.ordered ? ORDERED_WINDOW : WINDOW, c, fresh, &fresh_count))
        return AB_WINDOW; /* check 10 */
    switch (ask(s, c)) {
    case AB_REFUSE:
        return AB_REJECTED;
    case AB_WITHHOLD:
        *withheld = true;
        return AB_OK;
    case AB_TAKE:
        break;
    }
    int64_t number = s->newest + (in->arrival == AB_NEWEST ? (uint16_t)(seq - s->tracker.ack) : -(int64_t)(uint16_t)(s->tracker.ack - seq));
    track(&s->tracker, seq);
    s->newest = later(s->newest, number);
    s->received_since_sent++;
    if (c->application) {
        in->delivered = true;
        in->payload = c->payload;
        in->payload_size = c->payload_size;
        in->latest = number > s->latest[c->type]; /* P-2.3.7 */
        s->latest[c->type] = later(s->latest[c->type], number);
    }
    s->window = w;
    if (!s->config.ordered) {
        memcpy(s->events, fresh, fresh_count * sizeof *fresh);
        s->event_count = fresh_count;
    } else if (!deliver_in_order(s, fresh, fresh_count)) {
        end(s, AB_NO_MEMORY);
        return AB_NO_MEMORY;
    }
    in->events = s->events;
    in->event_count = s->event_count;
    return AB_OK;
}

ab_error ab_receive(ab_session *s, int64_t now, const uint8_t *wire, size_t size, ab_incoming *in) {
    clock_in(s, now);
    memset(in, 0, sizeof *in);
    free_released(s);
    s->event_count = 0;
    if (s->ended)
        return s->ended;
    content c;
    ab_error e = check(s, wire, size, &c);
    if (e)
        return e;
    uint16_t seq = (uint16_t)get(wire + 10, 2);
    ab_incoming brought = {classify(&s->tracker, seq), c.type, seq, false, false, NULL, 0, NULL, 0};
    bool fresh = brought.arrival == AB_NEWEST || brought.arrival == AB_LATE, withheld = false;
    if (fresh && (e = accept_datagram(s, &c, seq, &brought, &withheld)) != AB_OK)
        return e;
    read_acks(s, (uint16_t)get(wire + 12, 2), get(wire + 14, s->config.wide ? 8 : 4));
    if (fresh)
        s->heard_at = s->now;
    if (c.type == AB_DISCONNECT && brought.arrival == AB_NEWEST)
        end(s, AB_PEER_LEFT); /* P-8.4.4 */
    *in = brought;
    return AB_OK;
}

/* ---- Sending (5.2, chapter 6) ---- */

static ab_error reason(const ab_session *s) {
    if (s->ended)
        return s->ended;
    return s->state == LIVE ? AB_OK : AB_CLOSED;
}

ab_error ab_send(ab_session *s, int64_t now, const uint8_t *data, size_t size, uint16_t *id) {
    clock_in(s, now);
    if (reason(s))
        return reason(s);
    if (size > s->room - LIST_COUNT - EVENT_HEAD) /* P-5.1.2 */
        return AB_EVENT_TOO_LARGE;
    if (s->in_flight == SEND_WINDOW + (size_t)s->config.backlog) { /* P-5.2.3 */
        end(s, AB_UNACKNOWLEDGED);
        return AB_UNACKNOWLEDGED;
    }
    uint8_t *copy = malloc(size + 1); /* never null for an empty one */
    if (!copy)
        return AB_NO_MEMORY;
    if (size > 0)
        memcpy(copy, data, size);
    if (s->oldest == s->next_event)
        s->oldest_at = s->now;
    outgoing e = {copy, size, 0, 0, 0};
    *event(s, s->next_event) = e;
    *id = (uint16_t)s->next_event++;
    s->in_flight++;
    return AB_OK;
}

/* The number after the last event that may be on the wire (P-5.2.2). */
static uint64_t send_window_end(const ab_session *s) { return s->next_event < s->oldest + SEND_WINDOW ? s->next_event : s->oldest + SEND_WINDOW; }

/* When the next copy is due, if it is inside the send window (P-6.4.1). */
static int64_t due_at(const ab_session *s, const outgoing *e) {
    return e->copies == 0 ? 0 : after(e->last_at, s->config.resend);
}

typedef enum choice { ALL_DUE, NEVER_SENT, FOR_BUNDLE } choice;

static bool chosen(const ab_session *s, const outgoing *e, choice which) {
    return e->data && (which == NEVER_SENT ? e->copies == 0 : s->now >= due_at(s, e));
}

/* Whether e fits into a list that has size bytes, of room at most, and may go there. */
static bool fits(const outgoing *e, size_t size, size_t room, choice which) {
    return size + EVENT_HEAD + e->size <= room && (which != FOR_BUNDLE || e->copies < 2); /* P-6.4.2, P-10.1.5 */
}

/* Whether put_list would put anything. */
static bool any_due(const ab_session *s, size_t room, choice which) {
    for (uint64_t n = s->oldest; n < send_window_end(s); n++)
        if (chosen(s, event(s, n), which))
            return fits(event(s, n), LIST_COUNT, room, which);
    return false;
}

/* Puts a list of due events at p and notes that d carries them (P-6.4.2). */
static size_t put_list(ab_session *s, sent *d, uint8_t *p, size_t room, choice which) {
    size_t size = LIST_COUNT;
    p[0] = 0;
    d->first_event = s->oldest;
    for (uint64_t n = s->oldest; n < send_window_end(s) && p[0] < LIST_MAX; n++) {
        outgoing *e = event(s, n);
        if (!chosen(s, e, which))
            continue;
        if (!fits(e, size, room, which))
            break;
        put(p + size, n, 2);
        put(p + size + 2, e->size, 2);
        memcpy(p + size + EVENT_HEAD, e->data, e->size);
        size += EVENT_HEAD + e->size;
        p[0]++;
        d->events[(n - s->oldest) / 8] |= (uint8_t)(1 << (n - s->oldest) % 8);
        if (e->copies++ == 0)
            e->first_at = s->now;
        e->last_at = s->now;
    }
    return size;
}

/* Whether a datagram must be remembered behind REMEMBERED newer ones (P-4.2.6). */
static bool still_needed(const ab_session *s, const sent *d) {
    if (d->outcome == UNDECIDED)
        return true;
    if (d->outcome == LOST && s->now - d->lost_at < REMEMBERED_LOST)
        for (int i = 0; i < SEND_WINDOW; i++)
            if (carries(d, i) && undelivered(s, d->first_event + (uint64_t)i))
                return true;
    return false;
}

/* Makes room for one more datagram in the log: forgets, or makes the log larger. */
static bool make_room(ab_session *s) {
    if (s->next_sent - s->first_sent < s->log_size)
        return true;
    while (s->next_sent - s->first_sent > REMEMBERED && !still_needed(s, datagram(s, s->first_sent)))
        s->first_sent++;
    if (s->next_sent - s->first_sent < s->log_size)
        return true;
    if (s->log_size == HALF) {
        if (datagram(s, s->first_sent)->outcome == UNDECIDED)
            decide(s, s->first_sent, LOST);
        s->first_sent++;
        return true;
    }
    sent *larger = calloc((size_t)s->log_size * 2, sizeof *larger);
    if (!larger)
        return false;
    for (int64_t n = s->first_sent; n < s->next_sent; n++)
        larger[n & (s->log_size * 2 - 1)] = *datagram(s, n);
    free(s->log);
    s->log = larger;
    s->log_size *= 2;
    return true;
}

/* Why the next datagram may not be sent. */
static ab_error forbidden(const ab_session *s) {
    if (s->next_sent - s->newest_acknowledged >= HALF) /* P-3.1.4 */
        return s->state == LEAVING ? AB_CLOSED : AB_STALLED;
    if (s->config.seal && s->next_sent >= SEALED_MAX) /* P-11.4.1 */
        return s->state == LEAVING ? AB_CLOSED : AB_KEY_EXHAUSTED;
    return AB_OK;
}

/* Numbers the next datagram and remembers it, or ends the session and returns null. */
static sent *number(ab_session *s, uint8_t type) {
    ab_error e = forbidden(s);
    if (!e && !make_room(s))
        e = AB_NO_MEMORY;
    if (e) {
        end(s, e);
        return NULL;
    }
    sent *d = datagram(s, s->next_sent++);
    memset(d, 0, sizeof *d);
    d->at = s->now;
    d->type = type;
    return d;
}

/* Puts the header before the payload of the datagram that was numbered last, and seals
 * it. Returns its size. */
static size_t finish(ab_session *s, uint8_t *out, uint8_t type, size_t payload_size) {
    const ab_aead *a = s->config.seal;
    int64_t n = s->next_sent - 1;
    out[0] = s->format;
    out[1] = type;
    put(out + 2, s->config.token, 8);
    put(out + 10, (uint64_t)n, 2);
    put(out + 12, s->tracker.ack, 2);
    put(out + 14, s->tracker.history, s->config.wide ? 8 : 4); /* P-4.1.5 */
    s->sent_at = s->now;
    s->received_since_sent = 0;
    if (!a)
        return s->header + payload_size;
    uint8_t nonce[AB_MAX_NONCE];
    make_nonce(nonce, a, n);
    a->seal(a->key, nonce, out, s->header, out + s->header, payload_size, out + s->header);
    return s->header + payload_size + a->tag_size;
}

ab_error ab_append_datagram(ab_session *s, int64_t now, uint8_t type, const uint8_t *payload, size_t payload_size,
                            uint8_t out[AB_MAX_DATAGRAM], size_t *size, uint16_t *seq) {
    clock_in(s, now);
    if (reason(s)) /* P-2.2.4 */
        return reason(s);
    if (!is_application(type))
        return AB_RESERVED_TYPE;
    if (payload_size > s->room)
        return AB_DATAGRAM_TOO_LARGE;
    if (!forbidden(s))
        judge(s); /* P-7.2.3 */
    bool may_bundle = s->config.bundle && type != AB_CONNECT && type != AB_ACCEPT && payload_size < s->room; /* P-10.1.4, P-10.1.6 */
    size_t list_room = may_bundle ? s->room - 1 - payload_size : 0;
    bool bundle = may_bundle && any_due(s, list_room, FOR_BUNDLE);
    sent *d = number(s, type);
    if (!d)
        return s->ended;
    uint8_t *p = out + s->header;
    if (bundle) {
        *p++ = type;
        p += put_list(s, d, p, list_room, FOR_BUNDLE);
    }
    if (payload_size > 0)
        memcpy(p, payload, payload_size);
    p += payload_size;
    *size = finish(s, out, bundle ? AB_BUNDLE : type, (size_t)(p - out) - s->header);
    *seq = (uint16_t)(s->next_sent - 1);
    return AB_OK;
}

static size_t put_events(ab_session *s, uint8_t *out, choice which) {
    sent *d = number(s, AB_EVENT);
    return d ? finish(s, out, AB_EVENT, put_list(s, d, out + s->header, s->room, which)) : 0;
}

static size_t put_empty(ab_session *s, uint8_t *out, uint8_t type) { return number(s, type) ? finish(s, out, type, 0) : 0; }

static void leave(ab_session *s) {
    s->state = LEAVING;
    s->left_at = s->now;
}

/* What a leaving peer still says (P-8.4.2). */
static size_t put_last(ab_session *s, uint8_t *out) {
    if (s->disconnects == 0 && any_due(s, s->room, NEVER_SENT))
        return put_events(s, out, NEVER_SENT);
    if (s->disconnects < DISCONNECTS) {
        s->disconnects++;
        return put_empty(s, out, AB_DISCONNECT);
    }
    end(s, AB_CLOSED);
    return 0;
}

/* When the oldest undelivered event stalls (P-8.2.1). */
static int64_t stall_at(const ab_session *s) {
    if (s->in_flight == 0 || s->config.stall < 0 || event(s, s->oldest)->copies == 0)
        return INT64_MAX;
    return after(later(event(s, s->oldest)->first_at, s->oldest_at), s->config.stall);
}

static int64_t heartbeat_at(const ab_session *s) {
    bool burst = s->received_since_sent >= (s->config.wide ? 64 : 32); /* P-6.3.3 */
    return burst ? 0 : after(s->sent_at, s->beat);
}

/* In the order of P-6.1.1. */
size_t ab_due(ab_session *s, int64_t now, uint8_t out[AB_MAX_DATAGRAM]) {
    clock_in(s, now);
    if (s->ended)
        return 0;
    judge(s);
    if (s->state == CLOSING && (s->in_flight == 0 || s->now >= s->patience_end))
        leave(s); /* P-8.4.6 */
    if (s->state == LEAVING)
        return put_last(s, out);
    bool silent = s->now >= after(s->heard_at, s->config.timeout); /* P-8.1.1 */
    if (silent || s->now >= stall_at(s)) {
        end(s, silent ? AB_TIMEOUT : AB_STALLED);
        return 0;
    }
    if (any_due(s, s->room, ALL_DUE))
        return put_events(s, out, ALL_DUE);
    return s->now >= heartbeat_at(s) ? put_empty(s, out, AB_HEARTBEAT) : 0;
}

/* The earliest of what P-6.6.1 lists. */
int64_t ab_deadline(const ab_session *s) {
    if (s->ended)
        return -1;
    if (s->state == LEAVING)
        return s->reading;
    int64_t at = earlier(after(s->heard_at, s->config.timeout), earlier(stall_at(s), heartbeat_at(s)));
    for (uint64_t n = s->oldest; n < send_window_end(s); n++)
        if (event(s, n)->data)
            at = earlier(at, due_at(s, event(s, n)));
    if (s->state == CLOSING)
        at = earlier(at, s->in_flight == 0 ? 0 : s->patience_end);
    return after(s->reading, later(at, s->now) - s->now);
}

void ab_close(ab_session *s, int64_t now) {
    clock_in(s, now);
    if (!s->ended && s->state != LEAVING)
        leave(s);
}

/* Leaves once everything is delivered (P-8.4.6). */
void ab_shutdown(ab_session *s, int64_t now, int64_t patience) {
    clock_in(s, now);
    if (s->ended || s->state == LEAVING)
        return;
    if (patience <= 0) {
        leave(s);
        return;
    }
    int64_t patience_end = after(s->now, patience);
    s->patience_end = s->state == CLOSING ? earlier(s->patience_end, patience_end) : patience_end;
    s->state = CLOSING;
}

bool ab_next_outcome(ab_session *s, int64_t now, ab_outcome *o) {
    clock_in(s, now);
    judge(s); /* after the end, too (P-8.5.1) */
    if (s->outcome_count == 0)
        return false;
    *o = s->outcomes[s->outcome_first];
    s->outcome_first = (s->outcome_first + 1) % OUTCOMES;
    s->outcome_count--;
    return true;
}

ab_state ab_state_of(const ab_session *s) {
    size_t room = reason(s) ? 0 : SEND_WINDOW + (size_t)s->config.backlog - s->in_flight;
    ab_state state = {s->tracker.ack, s->tracker.history, s->in_flight, room, s->srtt, s->rttvar, s->ended};
    return state;
}
