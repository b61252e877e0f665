#include "endpoint_test.h"

#include "check.h"
#include "endpoint.h"
#include "libcrypto.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)
#define START (7000 * MS) /* of each attempt: the clock did not begin with it */

typedef struct message {
    uint8_t bytes[2048];
    size_t size;
} message;

/* What the tests take from the vectors: of the first handshake, and the Refuse. */
static struct {
    message private_key, hello, hello_bare, challenge, hello_shown, accept, refuse, probe, probe_reply, reset, key_accept;
} v;

static bool all_ok = true;
static const char *test_name;

static void want(bool ok, const char *what, int64_t value) {
    if (ok)
        return;
    printf("endpoint, %s: %s (%" PRId64 ")\n", test_name, what, value);
    all_ok = false;
}

static message message_of(const char *key) {
    message m = {{0}, 0};
    uint8_t bytes[LINE / 2];
    if (has_key(key))
        m.size = bytes_of(key, bytes);
    if (m.size > sizeof m.bytes)
        exit(2);
    memcpy(m.bytes, bytes, m.size);
    return m;
}

/* A client with these bytes, private key and server key; what it holds before is rubbish. */
static void begin_with(ab_client *c, const message *private_key, const message *hello, const uint8_t *server_key, bool wide, const ab_crypto *crypto) {
    ab_client_config config = {crypto, private_key->bytes, server_key, hello->bytes, hello->size, ab_default_config(0)};
    config.session.wide = wide;
    config.session.start = START;
    memset(c, 0xA5, sizeof *c);
    want(ab_client_begin(c, &config), "does not begin", 0);
}

/* Hands in a copy that is exactly as long, so that a read past its end is found. */
static ab_error hand(ab_client *c, int64_t ms, const uint8_t *bytes, size_t size, message *payload) {
    uint8_t *exact = malloc(size > 0 ? size : 1);
    if (size > 0)
        memcpy(exact, bytes, size);
    ab_incoming in;
    ab_error e = ab_client_receive(c, START + ms * MS, exact, size, &in);
    if (payload) {
        payload->size = in.payload_size;
        if (in.payload_size > 0)
            memcpy(payload->bytes, in.payload, in.payload_size);
    }
    free(exact);
    return e;
}

static ab_error hand_message(ab_client *c, int64_t ms, const message *m) { return hand(c, ms, m->bytes, m->size, NULL); }

static message due(ab_client *c, int64_t ms) {
    message m;
    memset(m.bytes, 0xA5, sizeof m.bytes);
    m.size = ab_client_due(c, START + ms * MS, m.bytes);
    return m;
}

static bool equal(const message *a, const message *b) { return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0; }

/* ---- The vectors (19.5) ---- */

static void replay_session(ab_client *c) {
    message m, payload = {{0}, 0};
    uint16_t seq;
    ab_session *s = ab_client_session(c);
    if (!s) {
        compare("message_accept", "did not open");
        return;
    }
    if (ab_append_datagram(s, START + 300 * MS, AB_INPUT, (const uint8_t *)"vector", 6, m.bytes, &m.size, &seq) != AB_OK)
        exit(2);
    compare_bytes("datagram_client_to_server", m.bytes, m.size);
    m = message_of("datagram_server_to_client");
    hand(c, 300, m.bytes, m.size, &payload);
    want(payload.size == 6 && memcmp(payload.bytes, "vector", 6) == 0, "the server's datagram does not open", 0);
    m = message_of("message_probe");
    hand_message(c, 300, &m);
    want(ab_client_deadline(c) == START + 300 * MS, "a Probe is not answered at once", ab_client_deadline(c));
    m = due(c, 300);
    compare_bytes("message_probe_reply", m.bytes, m.size);
    want(due(c, 300).size == 0, "a Probe is answered twice", 0);
    m = message_of("message_reset");
    hand_message(c, 300, &m);
    want(ab_client_ended(c) == AB_RESET, "a Reset does not end it", 0);
    want(due(c, 9000).size == 0 && ab_client_deadline(c) == -1, "it speaks after the end", 0);
}

static void replay_handshake(bool pinned) {
    ab_client c;
    message m = message_of("message_challenge"), private_key = message_of("client_private"), hello = message_of("hello");
    begin_with(&c, &private_key, &hello, pinned ? m.bytes + 35 : NULL, number_of("wide"), &libcrypto);
    message got = due(&c, 0);
    compare_bytes("message_hello_bare", got.bytes, got.size);
    want(due(&c, 249).size == 0 && ab_client_deadline(&c) == START + 250 * MS, "the second Hello is not due after 250 ms", ab_client_deadline(&c));
    hand_message(&c, 249, &m);
    want(ab_client_deadline(&c) == START + 249 * MS, "a new cookie is not shown at once", ab_client_deadline(&c));
    got = due(&c, 249);
    compare_bytes("message_hello", got.bytes, got.size);
    size_t size;
    if (has_key("message_refuse")) {
        m = message_of("message_refuse");
        hand_message(&c, 300, &m);
        compare("reason", (const char *)ab_client_said(&c, &size));
        want(ab_client_ended(&c) == AB_REFUSED, "a Refuse does not end it", 0);
    } else {
        m = message_of("message_accept");
        hand_message(&c, 300, &m);
        const uint8_t *said = ab_client_said(&c, &size);
        if (has_key("reply"))
            compare_bytes("reply", said, size);
        replay_session(&c);
    }
    ab_client_end(&c);
}

static void remember(void) {
    if (has_key("message_refuse"))
        v.refuse = message_of("message_refuse");
    if (v.private_key.size > 0)
        return;
    v.private_key = message_of("client_private");
    v.hello = message_of("hello");
    v.hello_bare = message_of("message_hello_bare");
    v.challenge = message_of("message_challenge");
    v.hello_shown = message_of("message_hello");
    v.accept = message_of("message_accept");
    v.probe = message_of("message_probe");
    v.probe_reply = message_of("message_probe_reply");
    v.reset = message_of("message_reset");
    v.key_accept = message_of("key_accept");
}

/* Reads the objects, each of which is a group of lines, into at.text. */
void replay_handshakes(const char *file) {
    static char line[LINE];
    FILE *f = fopen(file, "r");
    if (!f) {
        perror(file);
        exit(2);
    }
    test_name = "vectors";
    at.file = file;
    int compared = at.compared;
    size_t size = 0;
    for (at.line = 1; fgets(line, sizeof line, f); at.line++) {
        if (strncmp(line, "\t{", 2) == 0)
            size = 0;
        size += (size_t)snprintf(at.text + size, sizeof at.text - size, "%s", line);
        if (size >= sizeof at.text)
            exit(2);
        if (strncmp(line, "\t}", 2) != 0)
            continue;
        remember();
        replay_handshake(false);
        replay_handshake(true);
    }
    fclose(f);
    printf("%s: %d values\n", file, at.compared - compared);
}

/* ---- What the document asks for beyond them ---- */

/* A client that has shown the vector's cookie. */
static void begin(ab_client *c, bool pinned) {
    begin_with(c, &v.private_key, &v.hello, pinned ? v.challenge.bytes + 35 : NULL, false, &libcrypto);
    message m = due(c, 0);
    want(equal(&m, &v.hello_bare), "the first Hello is another", 0);
    want(hand_message(c, 0, &v.challenge) == AB_OK, "the Challenge is not taken", 0);
    m = due(c, 0);
    want(equal(&m, &v.hello_shown), "the second Hello is another", 0);
}

/* The vector's Challenge with one byte or two changed. */
static message challenge_with(size_t at_byte, uint8_t first, int second) {
    message m = v.challenge;
    m.bytes[at_byte] = first;
    if (second >= 0)
        m.bytes[at_byte + 1] = (uint8_t)second;
    return m;
}

static void try_damage(void) {
    test_name = "damage";
    ab_client c;
    begin(&c, true);
    const message *answers[] = {&v.accept, &v.refuse};
    for (int i = 0; i < 2; i++)
        for (size_t bit = 0; bit < answers[i]->size * 8; bit++) {
            message m = *answers[i];
            m.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            want(hand_message(&c, (int64_t)bit, &m) != AB_OK, "a flipped bit does not matter", (int64_t)bit);
            want(hand(&c, (int64_t)bit, answers[i]->bytes, bit / 8, NULL) != AB_OK, "a cut does not matter", (int64_t)bit);
        }
    for (size_t size = v.accept.size + 1; size < sizeof v.accept.bytes; size += 7)
        want(hand(&c, 2000 + (int64_t)size, v.accept.bytes, size, NULL) != AB_OK, "a longer one is taken", (int64_t)size);
    message longer = challenge_with(67, 9, -1);
    longer.size++;
    want(hand_message(&c, 4500, &longer) != AB_OK, "a longer Challenge is taken", 0);
    want(!ab_client_session(&c) && !ab_client_ended(&c), "damage did something", 0);
    want(hand_message(&c, 4500, &v.accept) == AB_OK && ab_client_session(&c), "the Accept does not open", 0);
    const message *codes[] = {&v.probe, &v.reset};
    for (int i = 0; i < 2; i++) {
        want(hand(&c, 4500, codes[i]->bytes, 25, NULL) != AB_OK && hand(&c, 4500, codes[i]->bytes, 27, NULL) != AB_OK, "another size is taken", i);
        for (size_t bit = 0; bit < codes[i]->size * 8; bit++) {
            message m = *codes[i];
            m.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            if (i == 0 && bit >= 80)
                continue; /* what is asked may be anything */
            want(hand_message(&c, 4500, &m) != AB_OK && !ab_client_ended(&c), "a flipped bit does not matter", (int64_t)bit);
        }
    }
    want(due(&c, 4500).size == 0, "damage is answered", 0);
    ab_client_end(&c);
}

/* Any bytes behind any kind, while it asks, shows and plays. */
static void try_rubbish(void) {
    test_name = "rubbish";
    ab_client c;
    uint32_t random = 1;
    begin_with(&c, &v.private_key, &v.hello, NULL, false, &libcrypto);
    for (int i = 0; i < 30000; i++) {
        message m = {{0x0E}, 0};
        for (size_t k = 2; k < 700; k++)
            m.bytes[k] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
        m.bytes[1] = (uint8_t)(m.bytes[2] % 9);
        m.bytes[2] = (uint8_t)(m.bytes[3] % 2);
        memcpy(m.bytes + 3, v.challenge.bytes + 3, i % 3 == 0 ? 32 : 0);
        size_t sizes[] = {(size_t)(m.bytes[699] + m.bytes[698] * 2), 99, 35, 26, 76};
        hand(&c, i / 10, m.bytes, sizes[i % 5], NULL);
        if (i >= 10000 && i % 1000 == 0) /* again, as rubbish drives it out */
            hand_message(&c, i / 10, &v.challenge);
        if (i == 20000)
            hand_message(&c, i / 10, &v.accept);
        while (due(&c, i / 10).size > 0) {}
        want(!ab_client_ended(&c), "rubbish ends it", i);
    }
    want(ab_client_session(&c) != NULL, "rubbish keeps it out", 0);
    ab_client_end(&c);
}

static void try_reason(message challenge, ab_error why) {
    test_name = "who hears from another than the server is told why, when time is over";
    ab_client c;
    int hellos = 0;
    int64_t at_time;
    begin_with(&c, &v.private_key, &v.hello, v.challenge.bytes + 35, false, &libcrypto);
    while ((at_time = ab_client_deadline(&c)) >= 0) {
        int64_t ms = (at_time - START) / MS;
        want(ab_client_ended(&c) == AB_OK && ms <= 5000, "it is over too soon or late", ms);
        for (message m; (m = due(&c, ms)).size > 0; hellos++)
            want(equal(&m, &v.hello_bare), "it shows a cookie", ms);
        hand_message(&c, ms, &challenge);
        message version = challenge_with(2, 9, -1);
        if (why == AB_SERVER_KEY)
            hand_message(&c, ms, &version); /* counts for less */
    }
    want(ab_client_ended(&c) == why, ab_error_name(ab_client_ended(&c)), why);
    want(hellos == 20, "so many Hellos", hellos);
    ab_client_end(&c);
}

/* P-13.2.5: a server that has not decided says nothing, and is asked again. */
static void try_put_off(void) {
    test_name = "put off";
    ab_client c;
    begin(&c, true);
    int hellos = 0;
    for (int64_t ms = 1; ms < 5000; ms++)
        for (message m; (m = due(&c, ms)).size > 0; hellos++)
            want(ms % 250 == 0 && equal(&m, &v.hello_shown), "another Hello, or at another time", ms);
    want(hellos == 19, "so many Hellos", hellos);
    want(hand_message(&c, 4999, &v.accept) == AB_OK && ab_client_session(&c), "it is not admitted", 0);
    want(due(&c, 5000).size == 0 && !ab_client_ended(&c), "it gives up although it plays", 0);
    ab_client_end(&c);
}

/* A library that does not mind the result of zeros. */
static bool careless_x25519(void *context, const uint8_t a[32], const uint8_t b[32], uint8_t shared[32]) {
    if (!libcrypto.x25519(context, a, b, shared))
        memset(shared, 0, 32);
    return true;
}

static void try_low_order(void) {
    test_name = "a point of low order, and an Accept before any Challenge";
    ab_client c;
    ab_crypto careless = libcrypto;
    careless.x25519 = careless_x25519;
    begin_with(&c, &v.private_key, &v.hello, NULL, false, &careless);
    due(&c, 0);
    want(hand_message(&c, 0, &v.accept) == AB_IGNORED, "an Accept is taken", 0);
    want(hand_message(&c, 0, &v.refuse) == AB_IGNORED, "a Refuse is taken", 0);
    message m = v.challenge;
    memset(m.bytes + 35, 0, 32);
    want(hand_message(&c, 0, &m) == AB_IGNORED && due(&c, 0).size == 0, "a server key of zeros is taken", 0);
    hand_message(&c, 0, &v.challenge);
    m = v.accept;
    memset(m.bytes + 2, 0, 32);
    want(hand_message(&c, 0, &m) == AB_IGNORED && !ab_client_session(&c), "an ephemeral key of zeros is taken", 0);
    ab_client_end(&c);
}

/* P-13.1.4: an Accept whose length says otherwise than its size. */
static void try_length(void) {
    static const uint8_t nonce[12];
    test_name = "the length in an Accept";
    for (int off = -1; off <= 1; off++) {
        ab_client c;
        ab_aead a;
        begin(&c, true);
        message m = v.accept;
        if (!libcrypto.new_aead(NULL, v.key_accept.bytes, &a) || !a.open(a.key, nonce, m.bytes, 34, m.bytes + 34, m.size - 34, m.bytes + 34))
            exit(2);
        m.bytes[34 + 24] = (uint8_t)(m.bytes[34 + 24] + off);
        a.seal(a.key, nonce, m.bytes, 34, m.bytes + 34, m.size - 34 - 16, m.bytes + 34);
        libcrypto.free_aead(NULL, &a);
        want((hand_message(&c, 0, &m) == AB_OK) == (off == 0), "is not looked at", off);
        ab_client_end(&c);
    }
}

static void try_forged_cookies(bool pinned) {
    test_name = "forged cookies keep nobody out";
    ab_client c;
    begin(&c, pinned);
    int hellos = 0, ours = 0;
    for (int64_t ms = 0; ms < 4000; ms++) {
        if (ms % 100 == 0)
            hand_message(&c, ms, &v.challenge);
        message forged = challenge_with(67, (uint8_t)ms, (int)(ms >> 8));
        if (ms % 5 == 0)
            hand_message(&c, ms, &forged);
        for (message m; (m = due(&c, ms)).size > 0; hellos++)
            ours += equal(&m, &v.hello_shown);
    }
    want(hellos > 500 && hellos < 32 + 4 * 128 + 16, "so many Hellos", hellos);
    want(ours > 5, "so many with the server's cookie", ours);
    want(hand_message(&c, 4000, &v.accept) == AB_OK, "it is not admitted", 0);
    ab_client_end(&c);
}

/* The cookies that are shown now must be these, by their first byte, and no other. */
static void want_shown(ab_client *c, int64_t ms, int count, int first, int step) {
    for (int i = 0; i < count; i++) {
        message m = due(c, ms);
        want(m.size == 640 && m.bytes[36] == first + i * step, "another cookie is shown", first + i * step);
    }
    want(due(c, ms).size == 0, "one more is shown", ms);
}

static void show(ab_client *c, int64_t ms, int cookie) {
    message m = challenge_with(67, (uint8_t)cookie, -1);
    hand_message(c, ms, &m);
}

static void try_turns(void) {
    test_name = "cookies have their turns";
    ab_client c;
    begin(&c, true);
    int first = v.challenge.bytes[67];
    show(&c, 0, 1);
    show(&c, 0, 2);
    want_shown(&c, 0, 2, 1, 1);
    want_shown(&c, 250, 1, first, 0);
    show(&c, 499, first); /* within 250 ms */
    show(&c, 499, 1);
    want_shown(&c, 499, 1, 1, 0);
    want_shown(&c, 1000, 1, 2, 0); /* the longest ago */
    for (int n = 101; n < 131; n++) /* 33 in all */
        show(&c, 1000, n);
    show(&c, 1000, 110); /* is to be shown already */
    want_shown(&c, 1000, 30, 101, 1);
    want_shown(&c, 1250, 1, 1, 0); /* the vector's has given way */
    ab_client_end(&c);
}

static void try_bound(void) {
    test_name = "Accepts that do not open are looked at within a bound";
    ab_client c;
    begin(&c, true);
    message junk = v.accept;
    junk.bytes[40] ^= 1;
    for (int i = 0; i < 250; i++)
        hand_message(&c, 0, &junk);
    want(hand_message(&c, 0, &v.accept) == AB_IGNORED, "there is no bound", 0);
    want(hand_message(&c, 1, &v.accept) == AB_OK, "the bound does not end", 0);
    ab_client_end(&c);
}

/* Whether any of c's bytes are these. */
static bool holds(const ab_client *c, const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i + size <= sizeof *c; i++)
        if (memcmp((const uint8_t *)c + i, bytes, size) == 0)
            return true;
    return false;
}

static void try_forgetting(void) {
    test_name = "it forgets the keys (P-13.3.3)";
    uint8_t shared[32];
    const message *answers[] = {&v.accept, &v.refuse};
    libcrypto.x25519(NULL, v.private_key.bytes, v.challenge.bytes + 35, shared);
    for (int i = 0; i < 2; i++) {
        ab_client c;
        begin(&c, true);
        want(holds(&c, v.private_key.bytes, 32) && holds(&c, shared, 32), "there is nothing to forget", i);
        hand_message(&c, 0, answers[i]);
        want(!holds(&c, v.private_key.bytes, 32) && !holds(&c, shared, 32), "it does not", i);
        ab_client_end(&c);
    }
}

/* What was blamed before a cookie came is forgotten; a clock that goes back stands still. */
static void try_second_thoughts(void) {
    test_name = "second thoughts";
    ab_client c;
    message version = challenge_with(2, 9, -1);
    begin_with(&c, &v.private_key, &v.hello, NULL, false, &libcrypto);
    hand_message(&c, 0, &version);
    hand_message(&c, 0, &v.challenge);
    want(due(&c, 0).size > 0 && due(&c, 100).size == 0, "no Hello, or one more", 0);
    want(due(&c, -5000).size == 0 && due(&c, -4851).size == 0 && due(&c, -4850).size > 0, "the next is not due 250 ms later", 0);
    due(&c, 100000);
    want(ab_client_ended(&c) == AB_TIMEOUT, "it blames the version", 0);
    ab_client_end(&c);
}

static void try_leaving(void) {
    test_name = "leaving, with a clock that goes back";
    ab_client c;
    begin(&c, true);
    hand_message(&c, 10, &v.accept);
    message fresh = challenge_with(67, 9, -1);
    want(hand_message(&c, 10, &fresh) == AB_IGNORED && hand_message(&c, 10, &v.accept) == AB_IGNORED && hand_message(&c, 10, &v.refuse) == AB_IGNORED,
         "it does not ignore the handshake's messages", 0);
    want(due(&c, 60).size > 0, "no Heartbeat", 0); /* at 60 ms: 50 after the start of the session */
    want(due(&c, -5000).size == 0 && due(&c, -4951).size == 0 && due(&c, -4950).size > 0, "no Heartbeat 50 ms later", 0);
    ab_close(ab_client_session(&c), START - 4950 * MS);
    int last = 0;
    for (message m; (m = due(&c, -4950)).size > 0; last++)
        want(m.bytes[1] == AB_DISCONNECT, "no Disconnect", m.bytes[1]);
    want(last == 3 && ab_client_ended(&c) == AB_CLOSED && ab_client_deadline(&c) == -1, "it has not left", last);
    want(hand_message(&c, 100, &v.probe) == AB_CLOSED && due(&c, 100).size == 0, "it answers after the end", 0);
    ab_client_end(&c);

    begin(&c, true);
    hand_message(&c, 4000, &v.accept);
    want(ab_client_deadline(&c) == START + 4050 * MS, "the session does not begin with the Accept", ab_client_deadline(&c));
    while (due(&c, 8999).size > 0) {}
    want(!ab_client_ended(&c), "the session's 5 s are over early", 0);
    due(&c, 9000);
    want(ab_client_ended(&c) == AB_TIMEOUT, "nor does it end 5 s later", 0);
    ab_client_end(&c);
}

/* ---- Crypto that fails ---- */

static int calls, failing; /* the call that fails */

static bool fails(void) { return calls++ == failing; }
static bool failing_x25519(void *context, const uint8_t a[32], const uint8_t b[32], uint8_t shared[32]) { return !fails() && libcrypto.x25519(context, a, b, shared); }
static bool failing_sha256(void *context, const uint8_t *in, size_t size, uint8_t digest[32]) { return !fails() && libcrypto.sha256(context, in, size, digest); }
static bool failing_new(void *context, const uint8_t key[32], ab_aead *aead) { return !fails() && libcrypto.new_aead(context, key, aead); }
static bool failing_hmac(void *context, const uint8_t *key, size_t key_size, const uint8_t *in, size_t size, uint8_t code[32]) {
    return !fails() && libcrypto.hmac_sha256(context, key, key_size, in, size, code);
}

/* Whatever call fails once, what it was for counts as lost, and the next try succeeds. */
static void try_failures(void) {
    test_name = "crypto that fails once";
    const ab_crypto crypto = {NULL, failing_x25519, failing_sha256, failing_hmac, failing_new, libcrypto.free_aead};
    ab_client_config config = {&crypto, v.private_key.bytes, v.challenge.bytes + 35, v.hello.bytes, v.hello.size, ab_default_config(0)};
    config.session.start = START;
    failing = 0;
    do {
        ab_client c;
        calls = 0;
        if (!ab_client_begin(&c, &config)) {
            want(!holds(&c, v.private_key.bytes, 32), "it keeps the private key", failing);
            continue;
        }
        for (int64_t ms = 0; ms < 1000 && !ab_client_session(&c); ms += 250) {
            message bare = due(&c, ms);
            want(bare.size == 0 || equal(&bare, &v.hello_bare) || equal(&bare, &v.hello_shown), "another Hello", failing);
            hand_message(&c, ms, &v.challenge);
            due(&c, ms);
            hand_message(&c, ms, &v.accept);
        }
        hand_message(&c, 1000, &v.probe);
        hand_message(&c, 1000, &v.probe);
        message m = due(&c, 1000);
        want(equal(&m, &v.probe_reply), "it does not play", failing);
        ab_client_end(&c);
    } while (calls > failing++); /* until no call was the one that fails */
    want(failing > 15, "so few calls", failing);
}

static void try_bad_configs(void) {
    test_name = "a config out of its range";
    ab_client c;
    ab_client_config config = {&libcrypto, v.private_key.bytes, NULL, v.accept.bytes, AB_MAX_HELLO + 1, ab_default_config(0)};
    want(!ab_client_begin(&c, &config), "a hello of 513 bytes is taken", 0);
    config.hello_size = 0;
    config.session.heartbeat = 0;
    want(!ab_client_begin(&c, &config), "a heartbeat of 0 is taken", 0);
    want(ab_client_size() == sizeof c, "has another size", 0);
}

bool try_client(void) {
    if (v.private_key.size == 0 || v.refuse.size == 0)
        return true; /* no file of them was named */
    try_damage();
    try_rubbish();
    message echo = challenge_with(3, 9, -1), version = challenge_with(2, 9, -1), key = challenge_with(35, 9, -1);
    try_reason(version, AB_VERSION);
    version.size = 35;
    try_reason(version, AB_VERSION);
    try_reason(key, AB_SERVER_KEY);
    try_reason(echo, AB_TIMEOUT);
    try_put_off();
    try_low_order();
    try_length();
    try_forged_cookies(true);
    try_forged_cookies(false);
    try_turns();
    try_bound();
    try_forgetting();
    try_second_thoughts();
    try_leaving();
    try_failures();
    try_bad_configs();
    printf("endpoint: %s\n", all_ok ? "ok" : "FAILED");
    return all_ok;
}
