/* The client of the handshake (chapter 13 of docs/protocol.md) in C99: it brings a
 * program that knows a server's address, and best its public key, to a sealed session
 * of ackbits.h. Like that it has no input and output of its own, and knows no clock, no
 * random numbers and no cipher: datagrams, readings of a clock, 32 random bytes and an
 * ab_crypto come from the caller. It asks for memory once: for the session. */
#ifndef ACKBITS_ENDPOINT_H
#define ACKBITS_ENDPOINT_H

#include "ackbits.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AB_MAX_HELLO = 512, AB_MAX_REPLY = 512, AB_MAX_REASON = 256 }; /* bytes (P-13.1.4) */

/* What a platform's library of cryptography has to give. Each function returns false if
 * that failed; what it was to be used for then counts as lost. */
typedef struct ab_crypto {
    void *context; /* handed to all; null is fine */
    /* RFC 7748, of the 32 bytes as they come. May fail where the result is all zeros. */
    bool (*x25519)(void *context, const uint8_t private_key[32], const uint8_t public_key[32], uint8_t shared[32]);
    bool (*sha256)(void *context, const uint8_t *in, size_t size, uint8_t digest[32]);
    bool (*hmac_sha256)(void *context, const uint8_t *key, size_t key_size, const uint8_t *in, size_t size, uint8_t code[32]);
    /* Makes AES-256-GCM with this key, of which it keeps a copy: nonces of 12 bytes, tags of 16. */
    bool (*new_aead)(void *context, const uint8_t key[32], ab_aead *aead);
    void (*free_aead)(void *context, ab_aead *aead); /* of new_aead, each once */
} ab_crypto;

typedef struct ab_client_config {
    const ab_crypto *crypto;    /* must outlive the client */
    const uint8_t *private_key; /* 32 bytes of the system's random generator, for this attempt alone; copied */
    const uint8_t *server_key;  /* 32 bytes that came with the program; copied. Null: it talks to whoever answers */
    const uint8_t *hello;       /* what the server's application reads; copied */
    size_t hello_size;          /* up to AB_MAX_HELLO */
    ab_config session;          /* of ab_default_config(0). start: of the attempt. token, seal and open are not looked at */
} ab_client_config;

/* A Challenge that may be the server's. */
typedef struct ab_offer {
    uint8_t server_key[32], shared[32], cookie[32]; /* S, X(C, S) */
    int64_t shown_at; /* when a Hello last showed the cookie; -1: one is to, at once */
} ab_offer;

/* So many a second, and so many at once. */
typedef struct ab_bucket {
    int64_t interval, burst; /* of time, for each; how many */
    int64_t paid;            /* the time up to which what was taken is paid for */
} ab_bucket;

/* One attempt to join, and the session that comes of it: some 5 kB that the caller owns and
 * does not move or copy while it is in use. Read the fields by the functions below. */
typedef struct ab_client {
    ab_config config; /* of the session */
    const ab_crypto *crypto;
    bool pinned; /* whether server_key is known */
    uint8_t server_key[32], private_key[32], key[32] /* C */;
    uint8_t hello[AB_MAX_HELLO], hello_hash[32] /* H */;
    size_t hello_size;

    int64_t reading, now; /* the last reading, and the time since the start that it stands for */
    int64_t said_at;      /* when the last Hello was sent; -1: none was */
    ab_offer offers[32];  /* in the order in which they came (P-13.2.3) */
    size_t offer_count;
    ab_bucket hurries; /* of cookies that are shown at once */
    ab_bucket tries;   /* of X25519 (P-13.2.7) */
    ab_error ended, why /* the reason if time is over */;

    ab_session *session; /* null until it is admitted */
    ab_aead seal, open;
    uint8_t token[8], reset_code[16], probe_key[32]; /* token: as on the wire */
    uint8_t probe_reply[26];
    bool reply_waits; /* probe_reply is to be sent */
    uint8_t said[AB_MAX_REPLY + 1]; /* the reply or reason */
    size_t said_size;
} ab_client;

/* sizeof(ab_client), for callers in other languages, who bring memory that is aligned as malloc's. */
size_t ab_client_size(void);

/* Begins an attempt; what *c held before does not matter. False, and nothing to end, if a
 * value of the config is out of its range or the crypto failed. */
bool ab_client_begin(ab_client *c, const ab_client_config *config);

/* Frees the session and wipes all keys. Sends nothing: leave the session before (ab_shutdown). */
void ab_client_end(ab_client *c);

/* Takes in one datagram, which must come from the address that the caller sends to. What
 * the session makes of it is returned as by ab_receive; of a message of the handshake, in is
 * empty, and AB_IGNORED says that it meant nothing, now or to this client. Call
 * ab_client_due until it returns 0 afterwards. */
ab_error ab_client_receive(ab_client *c, int64_t now, const uint8_t *datagram, size_t size, ab_incoming *in);

/* Puts the next datagram that is due, of the handshake or the session, into out and returns
 * its size; 0: nothing is due. It stands for ab_due of the session, and finds the timeouts. */
size_t ab_client_due(ab_client *c, int64_t now, uint8_t out[AB_MAX_DATAGRAM]);

/* When ab_client_due next has something to do; -1: never. */
int64_t ab_client_deadline(const ab_client *c);

/* The session, once the server has admitted the client; null before. It belongs to the
 * client: ab_send, ab_append_datagram, ab_shutdown and so on are the caller's, but what
 * arrives, what is due and ab_free are the client's. */
ab_session *ab_client_session(const ab_client *c);

/* Why it is over; AB_OK while it is not. AB_REFUSED; AB_RESET: the server has forgotten
 * the session; AB_TIMEOUT: no answer; AB_VERSION, AB_SERVER_KEY: an answer of that other kind
 * alone; AB_NO_MEMORY: none for the session; else why the session ended. */
ab_error ab_client_ended(const ab_client *c);

/* What the server's application said: its reply once there is a session, its reason after
 * AB_REFUSED, else nothing. A 0 follows the *size bytes, which are as the server sent them: do
 * not show a reason as it is. Valid until ab_client_end. */
const uint8_t *ab_client_said(const ab_client *c, size_t *size);

#ifdef __cplusplus
}
#endif

#endif
