#include "gcm.h"

#include <stdio.h>
#include <stdlib.h>

#include <openssl/evp.h>

enum { NONCE = 12, TAG = 16 };

static void must(int ok) {
    if (ok != 1) {
        fprintf(stderr, "libcrypto failed\n");
        exit(2);
    }
}

static void seal(void *key, const uint8_t *nonce, const uint8_t *additional, size_t additional_size,
                 const uint8_t *in, size_t size, uint8_t *out) {
    int n;
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    must(EVP_EncryptInit_ex(c, EVP_aes_128_gcm(), NULL, key, nonce));
    must(EVP_EncryptUpdate(c, NULL, &n, additional, (int)additional_size));
    if (size > 0)
        must(EVP_EncryptUpdate(c, out, &n, in, (int)size));
    must(EVP_EncryptFinal_ex(c, out + size, &n));
    must(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG, out + size));
    EVP_CIPHER_CTX_free(c);
}

static bool open_sealed(void *key, const uint8_t *nonce, const uint8_t *additional, size_t additional_size,
                        const uint8_t *in, size_t size, uint8_t *out) {
    int n;
    size -= TAG;
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    must(EVP_DecryptInit_ex(c, EVP_aes_128_gcm(), NULL, key, nonce));
    must(EVP_DecryptUpdate(c, NULL, &n, additional, (int)additional_size));
    if (size > 0)
        must(EVP_DecryptUpdate(c, out, &n, in, (int)size));
    must(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG, (void *)(uintptr_t)(in + size)));
    bool ok = EVP_DecryptFinal_ex(c, out + size, &n) == 1;
    EVP_CIPHER_CTX_free(c);
    return ok;
}

ab_aead aes_gcm(const uint8_t key[16]) {
    ab_aead a = {NONCE, TAG, (void *)(uintptr_t)key, seal, open_sealed};
    return a;
}
