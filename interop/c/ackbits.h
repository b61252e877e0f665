/* The ackbits protocol in C99: one end of a session, without input and output of
 * its own. P-… are the requirements of docs/protocol.md.
 *
 * Time is readings, in nanoseconds, of a clock that does not go back, and
 * that may begin anywhere; a reading that goes back counts as the last one (P-1.1.1). A session belongs
 * to one thread at a time; different sessions share nothing. */
#ifndef ACKBITS_H
#define ACKBITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    AB_MAX_DATAGRAM = 1200, /* P-2.1.2 */
    AB_MAX_NONCE = 64,
    AB_MAX_TAG = 64
};

typedef enum ab_error {
    AB_OK,
    /* A datagram was dropped; nothing changed. */
    AB_SHORT, AB_OVERSIZE, AB_FORMAT, AB_TOKEN, AB_REPLAYED, AB_FORGED, AB_TYPE, AB_PAYLOAD, AB_WINDOW, AB_REJECTED,
    /* A caller's mistake; nothing changed. */
    AB_EVENT_TOO_LARGE, AB_DATAGRAM_TOO_LARGE, AB_RESERVED_TYPE,
    /* Why a session or lane has ended. */
    AB_TIMEOUT, AB_PEER_LEFT, AB_CLOSED, AB_UNACKNOWLEDGED, AB_STALLED, AB_KEY_EXHAUSTED,
    AB_NO_MEMORY, /* where ab_send or ab_lane_send returns it, nothing changed */
    /* Of a lane. */
    AB_LANE_FULL, AB_LANE_OVERFLOW, AB_ACK,
    /* Of the handshake (endpoint.h). */
    AB_IGNORED, AB_REFUSED, AB_RESET, AB_VERSION, AB_SERVER_KEY
} ab_error;

/* The name that the document has for it; "" for AB_OK. */
const char *ab_error_name(ab_error e);

/* Types of datagrams (P-2.2). Applications have 1 to 4 and 16 to 255. */
enum { AB_CONNECT = 1, AB_ACCEPT = 2, AB_INPUT = 3, AB_SNAPSHOT = 4, AB_EVENT = 5, AB_HEARTBEAT = 6, AB_DISCONNECT = 7, AB_BUNDLE = 8 };

/* A cipher with one key (chapter 11), such as AES-128-GCM: nonces of 12 bytes, tags
 * of 16. The tag follows what is sealed, out may be in, and open returns false for
 * what was not sealed with this key, nonce and additional data. */
typedef struct ab_aead {
    size_t nonce_size; /* 8 to AB_MAX_NONCE */
    size_t tag_size;   /* at most AB_MAX_TAG */
    void *key;         /* handed to both */
    void (*seal)(void *key, const uint8_t *nonce, const uint8_t *additional, size_t additional_size,
                 const uint8_t *in, size_t size, uint8_t *out);
    bool (*open)(void *key, const uint8_t *nonce, const uint8_t *additional, size_t additional_size,
                 const uint8_t *in, size_t size, uint8_t *out);
} ab_aead;

/* What an application says of a datagram before it is acknowledged (P-2.3.5). */
typedef enum ab_decision { AB_TAKE, AB_REFUSE, AB_WITHHOLD } ab_decision;

typedef struct ab_config {
    uint64_t token; /* fresh and random for each session (P-2.1.6) */
    int64_t start;  /* the reading at which it begins, 0 or more */
    bool wide;      /* 65 acknowledgements in a header instead of 33 */
    bool ordered;   /* deliver events in the order of their ids (chapter 9) */
    bool bundle;    /* let application datagrams carry events (chapter 10) */
    bool outcomes;  /* queue them for ab_next_outcome (7.2) */
    int64_t heartbeat, timeout, resend, loss;
    int64_t stall;       /* 0: 15 s, or timeout where that is longer; negative: never */
    int64_t poll;        /* of a caller on a tick; 0: it follows ab_deadline (P-6.3.2) */
    int backlog;         /* events beyond 256 that may wait, up to 65024 (P-5.2.3) */
    size_t max_datagram; /* 128 to 1200, of what is sent (P-6.5.1) */
    const ab_aead *seal, *open; /* both or neither; they must outlive the session */
    ab_decision (*accept)(void *context, uint8_t type, const uint8_t *payload, size_t size); /* null: accepts all */
    void *accept_context;
} ab_config;

/* The protocol's own choices (chapter 16), narrow and bare. */
ab_config ab_default_config(uint64_t token);

/* Whether every value is in its range. */
bool ab_good_config(const ab_config *config);

typedef struct ab_session ab_session;

/* Null when there is no memory or the config is not good. */
ab_session *ab_new(const ab_config *config);
void ab_free(ab_session *s);

typedef enum ab_arrival { AB_NEWEST = 1, AB_LATE, AB_DUPLICATE, AB_STALE } ab_arrival;

typedef struct ab_event {
    uint16_t id;
    size_t size;
    const uint8_t *data;
} ab_event;

/* What a datagram brought. Pointers are valid until the next ab_receive, and as long
 * as the datagram's bytes stay as they are. */
typedef struct ab_incoming {
    ab_arrival arrival;
    uint8_t type; /* of a Bundle: the inner one */
    uint16_t seq;
    bool delivered; /* payload is delivered */
    bool latest;    /* and no newer one of this type was accepted before (P-2.3.7) */
    const uint8_t *payload;
    size_t payload_size;
    const ab_event *events;
    size_t event_count;
} ab_incoming;

/* Accepts one datagram, or drops it. Call ab_due until it returns 0 afterwards (P-6.1.2). */
ab_error ab_receive(ab_session *s, int64_t now, const uint8_t *datagram, size_t size, ab_incoming *in);

/* Queues a copy of an event. The one for which ab_state.room is 0 ends the session. */
ab_error ab_send(ab_session *s, int64_t now, const uint8_t *event, size_t size, uint16_t *id);

/* Puts an application datagram into out, to be sent now. The payload lies elsewhere. */
ab_error ab_append_datagram(ab_session *s, int64_t now, uint8_t type, const uint8_t *payload, size_t payload_size,
                            uint8_t out[AB_MAX_DATAGRAM], size_t *size, uint16_t *seq);

/* Puts the next datagram that is due into out and returns its size; 0: nothing is due.
 * The timeouts are found here. */
size_t ab_due(ab_session *s, int64_t now, uint8_t out[AB_MAX_DATAGRAM]);

/* When ab_due next has something to do; -1: never (P-6.6.1). */
int64_t ab_deadline(const ab_session *s);

void ab_close(ab_session *s, int64_t now);
void ab_shutdown(ab_session *s, int64_t now, int64_t patience);

typedef struct ab_outcome {
    uint16_t seq;
    uint8_t type;
    bool delivered; /* false: presumed lost */
    int64_t rtt;    /* 0 for a lost one */
} ab_outcome;

/* The next outcome of a datagram sent, of which the newest 1024 are kept. */
bool ab_next_outcome(ab_session *s, int64_t now, ab_outcome *outcome);

typedef struct ab_state {
    uint16_t ack;     /* the newest sequence accepted */
    uint64_t history; /* bit n: ack - 1 - n was accepted */
    size_t in_flight; /* undelivered events */
    size_t room;      /* how many ab_send takes before it ends the session */
    int64_t srtt, rttvar;
    ab_error ended; /* AB_OK while it lives */
} ab_state;

ab_state ab_state_of(const ab_session *s);

#ifdef __cplusplus
}
#endif

#endif
