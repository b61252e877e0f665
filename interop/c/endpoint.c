#include "endpoint.h"

#include <string.h>

enum {
    MESSAGE = 0x0E, VERSION = 1, /* P-13.1.1 */
    HELLO = 1, CHALLENGE, ACCEPT, REFUSE, RESET, PROBE, PROBE_REPLY,
    HELLO_SIZE = 640, HEAD = 36, /* of a Hello: all before the cookie */
    COOKIE_END = 68, CHALLENGE_SIZE = 99, ECHO_END = 35, ACCEPT_BOX = 34, REFUSE_BOX = 18, TOKEN_SIZE = 26,
    TAG = 16, NONCE = 12,
    ACCEPT_HEAD = 26, /* of its plaintext: token, reset code, length */
    OFFERS = 32, TO_SHOW = -1, NEVER = -1
};

#define MS INT64_C(1000000)
#define REPEAT (250 * MS)    /* from one Hello to the next, and of one cookie (P-13.2.1) */
#define PATIENCE (5000 * MS) /* P-13.2.1 */

/* ---- Primitives ---- */

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

static uint64_t get(const uint8_t *p, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

/* In a time that does not depend on the bytes. */
static bool same(const uint8_t *a, const uint8_t *b, size_t size) {
    uint8_t differ = 0;
    for (size_t i = 0; i < size; i++)
        differ |= a[i] ^ b[i];
    return differ == 0;
}

/* Overwrites secrets; a compiler may leave out a memset of what is not read again. */
static void wipe(void *bytes, size_t size) {
    volatile uint8_t *p = bytes;
    while (size-- > 0)
        *p++ = 0;
}

static bool take(ab_bucket *b, int64_t now) {
    int64_t paid = later(b->paid, now) + b->interval;
    if (paid - now > b->burst * b->interval)
        return false;
    b->paid = paid;
    return true;
}

/* X25519 with our private key; false for a point of low order (P-13.2.4). */
static bool agree(const ab_client *c, const uint8_t public_key[32], uint8_t shared[32]) {
    static const uint8_t zeros[32];
    return c->crypto->x25519(c->crypto->context, c->private_key, public_key, shared) && !same(shared, zeros, 32);
}

/* Byte strings one after another: what a key is made with. */
typedef struct text {
    uint8_t bytes[256];
    size_t size;
} text;

static void add(text *t, const void *bytes, size_t size) {
    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
}

/* HKDF-SHA-256 of RFC 5869, of which 32 bytes are one round. */
static bool hkdf(const ab_crypto *crypto, const uint8_t *salt, size_t salt_size, const text *secret, text *info, uint8_t key[32]) {
    static const uint8_t round = 1, none[32]; /* as many zeros are what no salt stands for */
    uint8_t extracted[32];
    add(info, &round, 1);
    bool ok = crypto->hmac_sha256(crypto->context, salt_size > 0 ? salt : none, salt_size > 0 ? salt_size : sizeof none,
                                  secret->bytes, secret->size, extracted) &&
              crypto->hmac_sha256(crypto->context, extracted, sizeof extracted, info->bytes, info->size, key);
    wipe(extracted, sizeof extracted);
    return ok;
}

/* The info of P-13.3.1, up to what a row adds. */
static text info_of(const ab_client *c, const char *label, const uint8_t server_key[32]) {
    const uint8_t head[] = {0, VERSION, c->config.wide};
    text t = {{0}, 0};
    add(&t, "ackbits endpoint ", 17);
    add(&t, label, strlen(label));
    add(&t, head, sizeof head);
    add(&t, c->key, 32);
    add(&t, server_key, 32);
    return t;
}

/* A box is sealed, once, with a nonce of zeros, and stands behind the message (P-13.1.4). */

static bool seal_box(const ab_client *c, const uint8_t key[32], uint8_t *message, size_t at, size_t size) {
    static const uint8_t nonce[NONCE];
    ab_aead a;
    if (!c->crypto->new_aead(c->crypto->context, key, &a))
        return false;
    a.seal(a.key, nonce, message, at, message + at, size - at - TAG, message + at);
    c->crypto->free_aead(c->crypto->context, &a);
    return true;
}

static bool open_box(const ab_client *c, const uint8_t key[32], const uint8_t *message, size_t at, size_t size, uint8_t *plaintext) {
    static const uint8_t nonce[NONCE];
    ab_aead a;
    if (!c->crypto->new_aead(c->crypto->context, key, &a))
        return false;
    bool ok = a.open(a.key, nonce, message, at, message + at, size - at, plaintext);
    c->crypto->free_aead(c->crypto->context, &a);
    return ok;
}

/* ---- Begin and end ---- */

size_t ab_client_size(void) { return sizeof(ab_client); }

static void forget(ab_client *c) { /* what could open the session again (P-13.3.3) */
    wipe(c->private_key, sizeof c->private_key);
    wipe(c->offers, sizeof c->offers);
    c->offer_count = 0;
}

bool ab_client_begin(ab_client *c, const ab_client_config *config) {
    static const uint8_t base[32] = {9}; /* RFC 7748 */
    memset(c, 0, sizeof *c);
    c->config = config->session;
    c->config.seal = c->config.open = NULL;
    if (config->hello_size > AB_MAX_HELLO || !ab_good_config(&c->config))
        return false;
    c->crypto = config->crypto;
    c->pinned = config->server_key != NULL;
    if (c->pinned)
        memcpy(c->server_key, config->server_key, 32);
    memcpy(c->private_key, config->private_key, 32);
    if (config->hello_size > 0)
        memcpy(c->hello, config->hello, config->hello_size);
    c->hello_size = config->hello_size;
    c->reading = c->config.start;
    c->said_at = NEVER;
    c->why = AB_TIMEOUT;
    c->hurries.interval = 1000 * MS / 128;
    c->hurries.burst = 32;
    c->tries.interval = 1000 * MS / 1000;
    c->tries.burst = 250;
    if (agree(c, base, c->key) && c->crypto->sha256(c->crypto->context, c->hello, c->hello_size, c->hello_hash))
        return true;
    forget(c);
    return false;
}

void ab_client_end(ab_client *c) {
    if (c->session) {
        ab_free(c->session);
        c->crypto->free_aead(c->crypto->context, &c->seal);
        c->crypto->free_aead(c->crypto->context, &c->open);
    }
    wipe(c, sizeof *c);
    c->ended = AB_CLOSED;
}

static int64_t clock_in(ab_client *c, int64_t reading) { /* a step back counts as none (P-1.1.1) */
    c->now += later(0, reading - c->reading);
    c->reading = reading;
    return c->now;
}

/* ---- Cookies (13.2) ---- */

/* The cookie whose turn it is: those to be shown at once are shown the longest ago. */
static ab_offer *next_offer(ab_client *c) {
    ab_offer *next = NULL;
    for (size_t i = 0; i < c->offer_count; i++)
        if (!next || c->offers[i].shown_at < next->shown_at)
            next = &c->offers[i];
    return next;
}

/* The cookie that gives way where there is no room; null if none was shown. */
static ab_offer *shown_longest_ago(ab_client *c) {
    ab_offer *oldest = NULL;
    for (size_t i = 0; i < c->offer_count; i++)
        if (c->offers[i].shown_at != TO_SHOW && (!oldest || c->offers[i].shown_at < oldest->shown_at))
            oldest = &c->offers[i];
    return oldest;
}

static const ab_offer *offer_of(const ab_client *c, const uint8_t server_key[32]) {
    for (size_t i = 0; i < c->offer_count; i++)
        if (same(c->offers[i].server_key, server_key, 32))
            return &c->offers[i];
    return NULL;
}

/* The reason to give if nothing better comes: the key rather than the version (P-13.2.3). */
static ab_error blame(ab_client *c, ab_error why) {
    if (c->offer_count == 0 && c->why != AB_SERVER_KEY)
        c->why = why;
    return AB_IGNORED;
}

/* Keeps a cookie that is to be shown at once. */
static ab_error keep(ab_client *c, const uint8_t server_key[32], const uint8_t cookie[32]) {
    ab_offer offer = {{0}, {0}, {0}, TO_SHOW}, *gone = NULL;
    memcpy(offer.server_key, server_key, 32);
    memcpy(offer.cookie, cookie, 32);
    for (size_t i = 0; i < c->offer_count; i++)
        if (same(c->offers[i].cookie, cookie, 32) && same(c->offers[i].server_key, server_key, 32))
            gone = &c->offers[i];
    if (gone && (gone->shown_at == TO_SHOW || c->now - gone->shown_at < REPEAT))
        return AB_IGNORED;
    if (!take(&c->hurries, c->now))
        return AB_IGNORED;
    const ab_offer *known = offer_of(c, server_key);
    if (known)
        memcpy(offer.shared, known->shared, 32);
    else if (!take(&c->tries, c->now) || !agree(c, server_key, offer.shared))
        return AB_IGNORED;
    if (!gone && c->offer_count == OFFERS && !(gone = shown_longest_ago(c)))
        return AB_IGNORED;
    if (gone)
        memmove(gone, gone + 1, (size_t)(c->offers + c->offer_count-- - gone - 1) * sizeof *gone);
    c->offers[c->offer_count++] = offer;
    c->why = AB_TIMEOUT;
    return AB_OK;
}

/* A Challenge of any version (P-13.1.3). */
static ab_error challenged(ab_client *c, const uint8_t *message, size_t size) {
    if (size < ECHO_END || !same(message + 3, c->key, 32))
        return AB_IGNORED;
    if (message[2] != VERSION)
        return blame(c, AB_VERSION);
    if (size != CHALLENGE_SIZE)
        return AB_IGNORED;
    const uint8_t *server_key = message + ECHO_END;
    if (c->pinned && !same(server_key, c->server_key, 32))
        return blame(c, AB_SERVER_KEY);
    return keep(c, server_key, server_key + 32);
}

/* ---- Answers (13.2) ---- */

/* Notes what the server said; a 0 is behind it. */
static void say(ab_client *c, const uint8_t *bytes, size_t size) {
    memcpy(c->said, bytes, size);
    c->said_size = size;
}

/* What the keys of a session, and of the Accept before it, are made with. */
typedef struct agreement {
    const uint8_t *server_key, *ephemeral; /* S, E */
    text secret;                           /* X(C, S) | X(C, E) */
} agreement;

/* accept_hash: A; null for the Accept's own box. */
static bool derive(const ab_client *c, const char *label, const agreement *g, const uint8_t *accept_hash, uint8_t key[32]) {
    text info = info_of(c, label, g->server_key);
    add(&info, g->ephemeral, 32);
    add(&info, c->hello_hash, 32);
    if (accept_hash)
        add(&info, accept_hash, 32);
    return hkdf(c->crypto, NULL, 0, &g->secret, &info, key);
}

/* Makes the cipher of one direction (P-13.3.2). */
static bool direction(const ab_client *c, const char *label, const agreement *g, const uint8_t *accept_hash, ab_aead *a) {
    uint8_t key[32];
    bool ok = derive(c, label, g, accept_hash, key) && c->crypto->new_aead(c->crypto->context, key, a);
    wipe(key, sizeof key);
    return ok;
}

/* Begins the session of an Accept. False if the crypto failed: the Accept counts as lost. */
static bool begin_session(ab_client *c, const agreement *g, const uint8_t *accept, size_t size, uint64_t token) {
    uint8_t hash[32];
    if (!c->crypto->sha256(c->crypto->context, accept, size, hash) || !derive(c, "probe", g, hash, c->probe_key) ||
        !direction(c, "client to server", g, hash, &c->seal))
        return false;
    if (!direction(c, "server to client", g, hash, &c->open)) {
        c->crypto->free_aead(c->crypto->context, &c->seal);
        return false;
    }
    c->config.token = token;
    c->config.start = c->reading;
    c->config.seal = &c->seal;
    c->config.open = &c->open;
    c->session = ab_new(&c->config);
    if (!c->session) {
        c->crypto->free_aead(c->crypto->context, &c->seal);
        c->crypto->free_aead(c->crypto->context, &c->open);
        c->ended = AB_NO_MEMORY;
    }
    return true;
}

/* Tries an Accept with the key of one server. */
static bool admit(ab_client *c, const agreement *g, const uint8_t *message, size_t size) {
    uint8_t key[32], box[ACCEPT_HEAD + AB_MAX_REPLY];
    size_t reply_size = size - ACCEPT_BOX - TAG - ACCEPT_HEAD;
    bool ok = derive(c, "accept", g, NULL, key) && open_box(c, key, message, ACCEPT_BOX, size, box) &&
              get(box + 24, 2) == reply_size && begin_session(c, g, message, size, get(box, 8));
    if (ok) {
        memcpy(c->token, box, 8);
        memcpy(c->reset_code, box + 8, 16);
        say(c, box + ACCEPT_HEAD, reply_size);
        forget(c);
    }
    wipe(key, sizeof key);
    wipe(box, sizeof box);
    return ok;
}

static ab_error accepted(ab_client *c, const uint8_t *message, size_t size) {
    uint8_t second[32]; /* X(C, E) */
    if (c->offer_count == 0 || !take(&c->tries, c->now) || !agree(c, message + 2, second))
        return AB_IGNORED;
    bool ok = false;
    for (size_t i = 0; i < c->offer_count && !ok; i++) {
        const ab_offer *o = &c->offers[i];
        if (offer_of(c, o->server_key) != o) /* each server once */
            continue;
        agreement g = {o->server_key, message + 2, {{0}, 0}};
        add(&g.secret, o->shared, 32);
        add(&g.secret, second, 32);
        ok = admit(c, &g, message, size);
        wipe(&g, sizeof g);
    }
    wipe(second, sizeof second);
    return ok ? AB_OK : AB_IGNORED;
}

static ab_error refused(ab_client *c, const uint8_t *message, size_t size) {
    uint8_t key[32], reason[AB_MAX_REASON];
    for (size_t i = 0; i < c->offer_count; i++) {
        const ab_offer *o = &c->offers[i];
        if (offer_of(c, o->server_key) != o)
            continue;
        text secret = {{0}, 0}, info = info_of(c, "refuse", o->server_key);
        add(&secret, o->shared, 32);
        if (!hkdf(c->crypto, message + 2, 16, &secret, &info, key) || !open_box(c, key, message, REFUSE_BOX, size, reason))
            continue;
        say(c, reason, size - REFUSE_BOX - TAG);
        forget(c);
        c->ended = AB_REFUSED;
        return AB_OK;
    }
    return AB_IGNORED;
}

/* ---- Of a session (13.4, 13.5) ---- */

static ab_error probed(ab_client *c, const uint8_t *message) {
    uint8_t code[32];
    if (!same(message + 2, c->token, 8) || !c->crypto->hmac_sha256(c->crypto->context, c->probe_key, 32, message + 10, 16, code))
        return AB_IGNORED;
    c->probe_reply[0] = MESSAGE;
    c->probe_reply[1] = PROBE_REPLY;
    memcpy(c->probe_reply + 2, c->token, 8);
    memcpy(c->probe_reply + 10, code, 16);
    c->reply_waits = true;
    return AB_OK;
}

static ab_error reset(ab_client *c, const uint8_t *message) {
    if (!same(message + 2, c->token, 8) || !same(message + 10, c->reset_code, 16))
        return AB_IGNORED;
    c->ended = AB_RESET;
    return AB_OK;
}

/* ---- What comes in, and what is due ---- */

static bool between(size_t size, size_t least, size_t most) { return size >= least && size <= most; }

/* 15.6. */
static ab_error take_message(ab_client *c, const uint8_t *message, size_t size) {
    if (size < 2)
        return AB_IGNORED;
    uint8_t kind = message[1];
    if (!c->session && kind == CHALLENGE)
        return challenged(c, message, size);
    if (!c->session && kind == ACCEPT && between(size, ACCEPT_BOX + ACCEPT_HEAD + TAG, ACCEPT_BOX + ACCEPT_HEAD + AB_MAX_REPLY + TAG))
        return accepted(c, message, size);
    if (!c->session && kind == REFUSE && between(size, REFUSE_BOX + TAG, REFUSE_BOX + AB_MAX_REASON + TAG))
        return refused(c, message, size);
    if (c->session && kind == PROBE && size == TOKEN_SIZE)
        return probed(c, message);
    if (c->session && kind == RESET && size == TOKEN_SIZE)
        return reset(c, message);
    return AB_IGNORED;
}

ab_error ab_client_receive(ab_client *c, int64_t now, const uint8_t *datagram, size_t size, ab_incoming *in) {
    clock_in(c, now);
    memset(in, 0, sizeof *in);
    if (ab_client_ended(c))
        return ab_client_ended(c);
    if (size > 0 && datagram[0] == MESSAGE)
        return take_message(c, datagram, size);
    return c->session ? ab_receive(c->session, now, datagram, size, in) : AB_IGNORED;
}

/* A Hello with this cookie and its box, or a bare one if there is none. */
static size_t put_hello(ab_client *c, const ab_offer *o, uint8_t *out) {
    const uint8_t head[] = {MESSAGE, HELLO, VERSION, c->config.wide};
    memset(out, 0, HELLO_SIZE);
    memcpy(out, head, sizeof head);
    memcpy(out + sizeof head, c->key, 32);
    if (!o)
        return HELLO_SIZE;
    memcpy(out + HEAD, o->cookie, 32);
    out[COOKIE_END] = (uint8_t)c->hello_size;
    out[COOKIE_END + 1] = (uint8_t)(c->hello_size >> 8);
    memcpy(out + COOKIE_END + 2, c->hello, c->hello_size);
    uint8_t key[32];
    text secret = {{0}, 0}, info = info_of(c, "hello", o->server_key);
    add(&secret, o->shared, 32);
    add(&info, o->cookie, 32);
    bool ok = hkdf(c->crypto, NULL, 0, &secret, &info, key) && seal_box(c, key, out, COOKIE_END, HELLO_SIZE);
    wipe(&secret, sizeof secret);
    wipe(key, sizeof key);
    return ok ? HELLO_SIZE : 0;
}

/* When the next Hello is due (P-13.2.1). */
static int64_t hello_at(const ab_client *c) {
    for (size_t i = 0; i < c->offer_count; i++)
        if (c->offers[i].shown_at == TO_SHOW)
            return 0;
    return c->said_at == NEVER ? 0 : c->said_at + REPEAT;
}

size_t ab_client_due(ab_client *c, int64_t now, uint8_t out[AB_MAX_DATAGRAM]) {
    clock_in(c, now);
    if (ab_client_ended(c))
        return 0;
    if (c->session && c->reply_waits) {
        c->reply_waits = false;
        memcpy(out, c->probe_reply, sizeof c->probe_reply);
        return sizeof c->probe_reply;
    }
    if (c->session)
        return ab_due(c->session, now, out);
    if (c->now >= PATIENCE) {
        c->ended = c->why;
        forget(c);
        return 0;
    }
    if (c->now < hello_at(c))
        return 0;
    c->said_at = c->now;
    ab_offer *o = next_offer(c);
    if (o)
        o->shown_at = c->now;
    return put_hello(c, o, out);
}

int64_t ab_client_deadline(const ab_client *c) {
    if (ab_client_ended(c))
        return -1;
    if (c->session)
        return c->reply_waits ? c->reading : ab_deadline(c->session);
    int64_t at = hello_at(c) < PATIENCE ? hello_at(c) : PATIENCE;
    return c->reading + later(at - c->now, 0);
}

ab_session *ab_client_session(const ab_client *c) { return c->session; }

ab_error ab_client_ended(const ab_client *c) {
    return c->ended || !c->session ? c->ended : ab_state_of(c->session).ended;
}

const uint8_t *ab_client_said(const ab_client *c, size_t *size) {
    *size = c->said_size;
    return c->said;
}
