#include "libcrypto.h"

#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

enum { NONCE = 12, TAG = 16 };

/* ---- AES-GCM ---- */

/* Seals; what could not be sealed becomes zeros, which the peer drops as forged. */
static void seal(void *key, const uint8_t *nonce, const uint8_t *additional, size_t additional_size,
                 const uint8_t *in, size_t size, uint8_t *out) {
    int n;
    bool ok = EVP_EncryptInit_ex(key, NULL, NULL, NULL, nonce) == 1 &&
              EVP_EncryptUpdate(key, NULL, &n, additional, (int)additional_size) == 1 &&
              (size == 0 || EVP_EncryptUpdate(key, out, &n, in, (int)size) == 1) &&
              EVP_EncryptFinal_ex(key, out + size, &n) == 1 &&
              EVP_CIPHER_CTX_ctrl(key, EVP_CTRL_GCM_GET_TAG, TAG, out + size) == 1;
    if (!ok)
        memset(out, 0, size + TAG);
}

static bool open_sealed(void *key, const uint8_t *nonce, const uint8_t *additional, size_t additional_size,
                        const uint8_t *in, size_t size, uint8_t *out) {
    int n;
    size -= TAG;
    return EVP_DecryptInit_ex(key, NULL, NULL, NULL, nonce) == 1 &&
           EVP_DecryptUpdate(key, NULL, &n, additional, (int)additional_size) == 1 &&
           (size == 0 || EVP_DecryptUpdate(key, out, &n, in, (int)size) == 1) &&
           EVP_CIPHER_CTX_ctrl(key, EVP_CTRL_GCM_SET_TAG, TAG, (void *)(uintptr_t)(in + size)) == 1 &&
           EVP_DecryptFinal_ex(key, out + size, &n) == 1;
}

bool libcrypto_aead(const uint8_t *key, size_t key_size, ab_aead *aead) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (!context || EVP_EncryptInit_ex(context, key_size == 16 ? EVP_aes_128_gcm() : EVP_aes_256_gcm(), NULL, key, NULL) != 1) {
        EVP_CIPHER_CTX_free(context);
        return false;
    }
    aead->nonce_size = NONCE;
    aead->tag_size = TAG;
    aead->key = context;
    aead->seal = seal;
    aead->open = open_sealed;
    return true;
}

static bool new_aead(void *context, const uint8_t key[32], ab_aead *aead) {
    (void)context;
    return libcrypto_aead(key, 32, aead);
}

static void free_aead(void *context, ab_aead *aead) {
    (void)context;
    EVP_CIPHER_CTX_free(aead->key);
}

/* ---- The rest ---- */

static bool x25519(void *context, const uint8_t private_key[32], const uint8_t public_key[32], uint8_t shared[32]) {
    (void)context;
    size_t size = 32;
    EVP_PKEY *own = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, private_key, 32);
    EVP_PKEY *peer = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, public_key, 32);
    EVP_PKEY_CTX *c = own ? EVP_PKEY_CTX_new(own, NULL) : NULL;
    bool ok = c && peer && EVP_PKEY_derive_init(c) == 1 && EVP_PKEY_derive_set_peer(c, peer) == 1 &&
              EVP_PKEY_derive(c, shared, &size) == 1 && size == 32;
    EVP_PKEY_CTX_free(c);
    EVP_PKEY_free(peer);
    EVP_PKEY_free(own);
    return ok;
}

static bool sha256(void *context, const uint8_t *in, size_t size, uint8_t digest[32]) {
    (void)context;
    return EVP_Digest(in, size, digest, NULL, EVP_sha256(), NULL) == 1;
}

static bool hmac_sha256(void *context, const uint8_t *key, size_t key_size, const uint8_t *in, size_t size, uint8_t code[32]) {
    (void)context;
    return HMAC(EVP_sha256(), key, (int)key_size, in, size, code, NULL) != NULL;
}

const ab_crypto libcrypto = {NULL, x25519, sha256, hmac_sha256, new_aead, free_aead};
