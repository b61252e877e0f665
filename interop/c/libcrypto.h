/* The cryptography of OpenSSL's libcrypto, 1.1.1 or newer, for sessions and the handshake. */
#ifndef LIBCRYPTO_H
#define LIBCRYPTO_H

#include "endpoint.h"

extern const ab_crypto libcrypto;

/* AES-GCM with a key of 16 or 32 bytes, for sessions whose keys come from elsewhere; to be
 * freed by libcrypto.free_aead. The sessions that have it must be of one thread. */
bool libcrypto_aead(const uint8_t *key, size_t key_size, ab_aead *aead);

#endif
