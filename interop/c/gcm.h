/* AES-128-GCM of libcrypto as the cipher of a session. */
#ifndef GCM_H
#define GCM_H

#include "ackbits.h"

/* The key must stay where it is. */
ab_aead aes_gcm(const uint8_t key[16]);

#endif
